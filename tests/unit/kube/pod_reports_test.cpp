#include "kube/pod_reports.hpp"

#include <doctest/doctest.h>

#include <string>

#include "kube/driven_reports.hpp"
#include "kube/model_server.hpp"

namespace evictd::kube::pod_reports_test {

using namespace std::chrono_literals;
using fixture::ModelServer;
using fixture::refusal;

TEST_CASE("a pod's status goes before its Event, pods in the order in which they were evicted") {
  Reports reports;
  CHECK(reports.queue.evicted(eviction("a"), at(0s)));
  CHECK(reports.queue.evicted(eviction("b"), at(1s)));
  CHECK(reports.queue.waiting() == 4);
  CHECK(reports.queue.oldest() == at(0s));
  for (const auto* expected :
       {"PATCH /api/v1/namespaces/default/pods/a/status", "POST /api/v1/namespaces/default/events",
        "PATCH /api/v1/namespaces/default/pods/b/status", "POST /api/v1/namespaces/default/events", "nothing"}) {
    const auto got = reports.next(2s);
    CHECK(got == expected);
    if (got != "nothing") reports.answer(ok, 2s);
  }
  CHECK(reports.queue.counts().statuses == 2);
  CHECK(reports.queue.counts().events == 2);
  CHECK(reports.told.empty());
}

TEST_CASE("where the kubelet makes no Event, there is a status alone") {
  Reports reports;
  auto ended = eviction("a");
  ended.has_event = false;
  CHECK(reports.queue.evicted(ended, at(0s)));
  CHECK(reports.queue.waiting() == 1);
  CHECK(reports.next(0s) == "PATCH /api/v1/namespaces/default/pods/a/status");
}

TEST_CASE("with report: delete the status is told first, then the object goes") {
  Reports reports{{.report = ReportMode::Delete}};
  ModelServer server;
  server.pods["default/a"] = {.uid = "a-uid"};
  reports.queue.evicted(eviction("a"), at(0s));
  reports.send(server, 0s);
  CHECK(server.log == std::vector<std::string>{"status a-uid", "delete a-uid", "event a-uid"});
}

TEST_CASE("with report: none nothing is written about pods, nor Events") {
  Reports reports{{.report = ReportMode::None}};
  CHECK_FALSE(reports.queue.evicted(eviction("a"), at(0s)));
  reports.queue.threshold_met("memory", at(0s), WallTime{});
  reports.queue.node_shutdown({.pending = true, .begun = at(0s)}, at(0s), WallTime{});
  CHECK(reports.next(0s) == "nothing");
  CHECK_FALSE(reports.queue.due().has_value());
}

TEST_CASE("what cannot be an API object is never reported") {
  Reports reports;
  CHECK_FALSE(reports.queue.evicted(eviction("A/../b"), at(0s)));
  CHECK(reports.queue.waiting() == 0);
}

TEST_CASE("a pod that is evicted again is reported again; what waited of it is told as the later eviction") {
  Reports reports;
  CHECK(reports.queue.evicted(eviction("a"), at(0s)));
  auto again = eviction("a");
  again.message.text = "why again. ";
  CHECK(reports.queue.evicted(again, at(1s)));
  CHECK(reports.queue.waiting() == 2);
  const auto request = reports.queue.next(at(1s));
  REQUIRE(request.has_value());
  CHECK(request->body.contains("why again. "));
  CHECK(reports.queue.evicted(eviction("a"), at(1s)));  // while it is under way
  CHECK(reports.queue.waiting() == 3);
  reports.answer(ok, 1s);
  ModelServer server;
  server.pods["default/a"] = {.uid = "a-uid"};
  reports.send(server, 1s);
  CHECK(server.log == std::vector<std::string>{"event a-uid", "status a-uid"});
  CHECK(reports.queue.evicted(eviction("a"), at(2s)));
  CHECK(reports.queue.waiting() == 2);
  auto successor = eviction("a");
  successor.uid = "another";
  CHECK(reports.queue.evicted(successor, at(2s)));
  CHECK(reports.queue.waiting() == 4);
}

TEST_CASE("a pod that is evicted again within the life of an Event has another Event; one that is told twice has one") {
  Reports reports;
  ModelServer server;
  server.pods["default/a"] = {.uid = "a-uid"};
  for (const std::uint64_t id : {7, 7, 9}) {
    auto evicted = eviction("a");
    evicted.id = id;
    reports.queue.evicted(evicted, at(0s));
    reports.send(server, 0s);
  }
  CHECK(server.events.size() == 2);
  CHECK(server.log == std::vector<std::string>{"status a-uid", "event a-uid", "event a-uid"});
}

namespace {

enum class Waited { server_away, forbidden, under_way };

void check_returned(ReportMode mode, Waited waited) {
  CAPTURE(static_cast<int>(mode));
  CAPTURE(static_cast<int>(waited));
  Reports reports{{.report = mode}};
  ModelServer server;
  for (const auto* name : {"a", "b"}) {
    server.pods[std::string("default/") + name] = {.uid = std::string(name) + "-uid"};
    reports.queue.evicted(eviction(name), at(0s));
  }
  if (waited == Waited::forbidden) {
    server.forbidden = {"patch pods/status", "delete pods", "create events"};
    reports.send(server, 1s);
    server.forbidden.clear();
  }
  if (waited == Waited::under_way) {
    CHECK(reports.next(1s) == "PATCH /api/v1/namespaces/default/pods/a/status");
    reports.queue.returned("a-uid", at(1s));
    reports.queue.postponed(false, at(2s));
  }
  reports.queue.returned("a-uid", at(30s));
  reports.queue.returned("unknown", at(30s));
  CHECK(reports.queue.waiting() == (mode == ReportMode::Delete ? 4 : 3));
  CHECK(reports.queue.counts().gone == (mode == ReportMode::Delete ? 2 : 1));
  CHECK_FALSE(reports.queue.seen("a-uid", "Running", "", at(1h)));
  reports.send(server, 2h);
  CHECK(server.pods.at("default/a").modifications == 0);
  CHECK_FALSE(server.deleted.contains("a-uid"));
  CHECK(server.events.size() == 2);
  CHECK(reports.queue.counts().dropped == 0);

  reports.queue.evicted(eviction("a"), at(3h));
  reports.send(server, 3h);
  CHECK(reports.queue.counts().statuses == 2);
}

}  // namespace

TEST_CASE("of a pod that runs again nothing but the Event is written any more, however late and in whichever mode") {
  for (const auto mode : {ReportMode::Status, ReportMode::Delete})
    for (const auto waited : {Waited::server_away, Waited::forbidden, Waited::under_way}) check_returned(mode, waited);
}

TEST_CASE("a pod that runs again before its object could be deleted is not deleted") {
  Reports reports{{.report = ReportMode::Delete}};
  ModelServer server;
  server.pods["default/a"] = {.uid = "a-uid"};
  reports.queue.evicted(eviction("a"), at(0s));
  const auto status = reports.queue.next(at(0s));
  REQUIRE(status.has_value());
  reports.answer(server.handle(*status), 0s);
  REQUIRE(server.pods.at("default/a").modifications == 1);
  CHECK(reports.next(1s) == "DELETE /api/v1/namespaces/default/pods/a");
  reports.queue.postponed(false, at(2s));  // the server is away
  reports.queue.returned("a-uid", at(3s));
  reports.send(server, 2h);
  CHECK_FALSE(server.deleted.contains("a-uid"));
}

TEST_CASE("a pod that is gone needs no status") {
  Reports reports;
  reports.queue.evicted(eviction("a"), at(0s));
  CHECK(reports.next(0s) == "PATCH /api/v1/namespaces/default/pods/a/status");
  reports.answer(not_found, 0s);
  CHECK(reports.next(0s) == "POST /api/v1/namespaces/default/events");
  CHECK(reports.queue.counts().gone == 1);
  CHECK(reports.told.empty());
}

TEST_CASE("another pod of that name is never written to") {
  for (const bool as_invalid : {false, true}) {
    Reports reports{{.report = ReportMode::Delete}};
    ModelServer server;
    server.refuses_uid_as_invalid = as_invalid;
    server.pods["default/a"] = {.uid = "successor"};
    reports.queue.evicted(eviction("a"), at(0s));
    reports.send(server, 0s);
    CHECK(server.log == std::vector<std::string>{"event a-uid"});
    CHECK(server.pods.at("default/a").phase == "Running");
    CHECK(reports.told == std::vector<std::string>{"default/a: another pod has the name now; the eviction of a-uid is "
                                                   "not reported"});
    CHECK(reports.queue.counts().dropped == 2);
    CHECK(reports.queue.waiting() == 0);
  }
}

TEST_CASE("after a conflict that does not say why, the pod itself is asked who it is") {
  const auto conflict = refusal(409, "Conflict", "the object has been modified");
  Reports reports;
  ModelServer server;
  reports.queue.evicted(eviction("a"), at(0s));
  CHECK(reports.next(0s) == "PATCH /api/v1/namespaces/default/pods/a/status");
  reports.answer(conflict, 0s);
  CHECK(reports.next(0s) == "nothing");  // its Event does not overtake it
  CHECK(reports.queue.due() == at(1s));

  SUBCASE("the same pod: the status is sent again") {
    server.pods["default/a"] = {.uid = "a-uid"};
    reports.send(server, 1s);
    CHECK(server.log == std::vector<std::string>{"status a-uid", "event a-uid"});
  }
  SUBCASE("another pod: nothing is written to it") {
    server.pods["default/a"] = {.uid = "successor"};
    reports.send(server, 1s);
    CHECK(server.log == std::vector<std::string>{"event a-uid"});
  }
  SUBCASE("no pod: there is nothing to say of it") {
    reports.send(server, 1s);
    CHECK(server.log == std::vector<std::string>{"event a-uid"});
    CHECK(reports.told.empty());
  }
}

TEST_CASE("a static pod is reported through its mirror, whose uid is another") {
  auto static_pod = eviction("etcd-node-1");
  static_pod.static_hash = "hash";
  Reports reports;
  ModelServer server;

  SUBCASE("which is looked up") {
    server.pods["default/etcd-node-1"] = {.uid = "mirror", .mirror_of = "hash"};
    reports.queue.evicted(static_pod, at(0s));
    CHECK(reports.next(0s) == "GET /api/v1/namespaces/default/pods/etcd-node-1");
    reports.queue.postponed(false, at(0s));
    reports.send(server, 0s);
    CHECK(server.log == std::vector<std::string>{"status mirror", "event mirror"});
  }
  SUBCASE("which a pod source knows") {
    server.pods["default/etcd-node-1"] = {.uid = "mirror", .mirror_of = "hash"};
    static_pod.api_uid = "mirror";
    reports.queue.evicted(static_pod, at(0s));
    CHECK(reports.next(0s) == "PATCH /api/v1/namespaces/default/pods/etcd-node-1/status");
    reports.queue.postponed(false, at(0s));
    reports.send(server, 0s);
    CHECK(server.log == std::vector<std::string>{"status mirror", "event mirror"});
  }
  SUBCASE("unless it mirrors the next revision already") {
    server.pods["default/etcd-node-1"] = {.uid = "mirror", .mirror_of = "next"};
    reports.queue.evicted(static_pod, at(0s));
    reports.send(server, 0s);
    CHECK(server.pods.at("default/etcd-node-1").modifications == 0);
  }
}

TEST_CASE("what evictd may not do waits and holds up nothing, is told once and asked again") {
  Reports reports;
  ModelServer server;
  for (const auto* name : {"a", "b"}) {
    server.pods[std::string("default/") + name] = {.uid = std::string(name) + "-uid"};
    reports.queue.evicted(eviction(name), at(0s));
  }
  server.forbidden = {"patch pods/status"};
  reports.send(server, 0s);
  CHECK(server.log == std::vector<std::string>{"event a-uid", "event b-uid"});
  CHECK(reports.told.size() == 1);
  CHECK(reports.told.front() ==
        "the API server forbids evictd to patch pods/status, which needs a role that allows it; asked again at the "
        "latest every 5m0s: pods is forbidden (403)");
  CHECK(reports.queue.waiting() == 2);
  CHECK(reports.queue.due() == at(5s));  // the server may only have started just now
  reports.send(server, 5s);
  CHECK(reports.queue.due() == at(15s));
  for (const auto time : {15s, 35s, 75s, 155s, 315s}) reports.send(server, time);
  CHECK(reports.queue.due() == at(615s));
  server.forbidden.clear();
  reports.send(server, 615s);
  CHECK(server.pods.at("default/a").phase == "Failed");
  CHECK(server.pods.at("default/b").phase == "Failed");
  CHECK(reports.queue.waiting() == 0);
}

TEST_CASE("a right that is lost again is told again") {
  Reports reports;
  const auto lose = [&](const char* name, core::Duration time) {
    reports.queue.evicted(eviction(name), at(time));
    reports.next(time);
    reports.answer(forbidden, time);
  };
  lose("a", 0s);
  CHECK(reports.told.size() == 1);
  while (reports.next(5min) != "nothing") reports.answer(ok, 5min);
  reports.queue.seen("a-uid", "Failed", "Evicted", at(5min));
  lose("b", 6min);
  CHECK(reports.told.size() == 2);
}

TEST_CASE("what the server takes for wrong is dropped and told, and does not hold up the rest") {
  Reports reports;
  reports.queue.evicted(eviction("a"), at(0s));
  reports.next(0s);
  reports.answer(refusal(422, "Invalid", "status.phase: unsupported"), 0s);
  CHECK(reports.told ==
        std::vector<std::string>{"default/a: cannot patch pods/status: status.phase: unsupported (422)"});
  CHECK(reports.next(0s) == "POST /api/v1/namespaces/default/events");
}

TEST_CASE("while the server fails at one report, other pods' go first, its own Event does not") {
  Reports reports;
  reports.queue.evicted(eviction("a"), at(0s));
  reports.queue.evicted(eviction("b"), at(0s));
  CHECK(reports.next(0s).ends_with("pods/a/status"));
  reports.queue.postponed(true, at(0s));
  CHECK(reports.next(0s).ends_with("pods/b/status"));
  reports.answer(ok, 0s);
  CHECK(reports.next(0s).ends_with("/events"));
  reports.answer(ok, 0s);
  reports.queue.seen("b-uid", "Failed", "Evicted", at(0s));
  CHECK(reports.next(0s) == "nothing");
  CHECK(reports.queue.due() == at(1s));
  CHECK(reports.next(1s).ends_with("pods/a/status"));
  reports.queue.postponed(true, at(1s));
  CHECK(reports.queue.due() == at(3s));
}

TEST_CASE("a connection that is lost is nobody's fault: the same report is next") {
  Reports reports;
  reports.queue.evicted(eviction("a"), at(0s));
  reports.queue.evicted(eviction("b"), at(0s));
  CHECK(reports.next(0s).ends_with("pods/a/status"));
  reports.queue.postponed(false, at(0s));
  CHECK(reports.next(0s).ends_with("pods/a/status"));
}

TEST_CASE("when too many wait, the oldest Events go, and never a status") {
  Reports reports{{.capacity = 6}};
  for (const auto* name : {"a", "b", "c", "d", "e", "f"}) reports.queue.evicted(eviction(name), at(0s));
  CHECK(reports.queue.waiting() == 6);
  CHECK(reports.told == std::vector<std::string>{"6 reports wait for the API server: the oldest events are dropped"});
  std::string order;
  for (auto next = reports.next(0s); next != "nothing"; next = reports.next(0s)) {
    order += next.ends_with("/events") ? "event " : next.substr(next.find("pods/") + 5, 2);
    reports.answer(ok, 0s);
  }
  CHECK(order == "a/b/c/d/e/f/");
  CHECK(reports.queue.counts().dropped == 6);
  CHECK(reports.queue.counts().statuses == 6);
}

TEST_CASE("an Event under way is not dropped, and beyond the bound not even a status is taken") {
  Reports reports{{.capacity = 2}};
  reports.queue.evicted(eviction("a"), at(0s));
  reports.next(0s);
  reports.answer(ok, 0s);
  CHECK(reports.next(0s).ends_with("/events"));
  reports.queue.evicted(eviction("b"), at(0s));
  reports.queue.evicted(eviction("c"), at(0s));  // no place for its status
  CHECK(reports.queue.waiting() == 2);
  CHECK(reports.told.back() == "2 evictions wait for the API server: the newest is not reported");
  reports.answer(ok, 0s);
  CHECK(reports.queue.counts().events == 1);
  CHECK(reports.next(0s).ends_with("pods/b/status"));
}

TEST_CASE("a threshold that is met again and again is one Event a minute for each resource") {
  Reports reports;
  for (int second = 0; second < 70; second += 10)
    reports.queue.threshold_met("memory", at(std::chrono::seconds{second}), WallTime{std::chrono::seconds{second}});
  reports.queue.threshold_met("pids", at(61s), WallTime{61s});
  std::vector<std::string> bodies;
  while (const auto request = reports.queue.next(at(70s))) {
    CHECK(request->target == "/api/v1/namespaces/default/events");
    bodies.push_back(request->body);
    reports.answer(ok, 70s);
  }
  REQUIRE(bodies.size() == 3);
  CHECK(bodies[0].contains(R"("count":1)"));
  CHECK(bodies[1].contains(R"("count":6)"));
  CHECK(bodies[1].contains(R"("firstTimestamp":"1970-01-01T00:00:10Z","lastTimestamp":"1970-01-01T00:01:00Z")"));
  CHECK(bodies[2].contains("reclaim pids"));
}

TEST_CASE("a shutdown and its cancellation are an Event each; two evictds that tell of one shutdown make one") {
  ModelServer server;
  {
    Reports reports;
    reports.queue.node_shutdown({}, at(0s), WallTime{});  // there is none
    CHECK(reports.queue.waiting() == 0);
    reports.queue.node_shutdown({.pending = true, .begun = at(1s)}, at(1s), WallTime{1s});
    CHECK(reports.next(1s) == "POST /api/v1/namespaces/default/events");
    reports.queue.postponed(false, at(1s));
    reports.send(server, 2s);
  }
  Reports reports;  // of an evictd that was started in the middle
  reports.queue.node_shutdown({.pending = true, .begun = at(1s)}, at(3s), WallTime{1s});
  reports.queue.node_shutdown({.pending = false, .begun = at(1s)}, at(4s), WallTime{4s});
  reports.send(server, 4s);
  CHECK(reports.queue.waiting() == 0);
  CHECK(server.log == std::vector<std::string>{"event node-1", "event node-1"});
  CHECK(server.events.size() == 2);
  CHECK(reports.told.empty());
}

}  // namespace evictd::kube::pod_reports_test
