// What becomes of the status of an evicted pod that somebody else wrote over.
#include "kube/pod_reports.hpp"

#include <doctest/doctest.h>

#include <string>

#include "kube/driven_reports.hpp"
#include "kube/model_server.hpp"

namespace evictd::kube::rewritten_status_test {
namespace {

using namespace std::chrono_literals;
using fixture::ModelServer;
using fixture::refusal;

/// Pod "a" with its object, evicted at 0 s and reported.
struct Reported : Reports {
  ModelServer server;

  explicit Reported(ReportOptions chosen = {}) : Reports{std::move(chosen)} {
    server.pods["default/a"] = {.uid = "a-uid"};
    queue.evicted(eviction("a"), at(0s));
    send(server, 0s);
    REQUIRE(says_evicted());
  }
  bool says_evicted() {
    const auto& pod = server.pods.at("default/a");
    return pod.phase == "Failed" && pod.reason == "Evicted";
  }
};

constexpr auto read_a = "GET /api/v1/namespaces/default/pods/a";
constexpr auto write_a = "PATCH /api/v1/namespaces/default/pods/a/status";

}  // namespace

TEST_CASE("a pod whose status was written is read a second and eleven seconds later, which nothing waits for") {
  Reported reports;
  CHECK(reports.queue.waiting() == 0);
  CHECK_FALSE(reports.queue.oldest().has_value());
  for (const auto time : {1s, 11s}) {
    CHECK(reports.queue.due() == at(time));
    CHECK(reports.next(time) == read_a);
    reports.queue.postponed(false, at(time));
    reports.send(reports.server, time);
  }
  CHECK_FALSE(reports.queue.due().has_value());
  CHECK(reports.server.pods.at("default/a").modifications == 1);
  CHECK(reports.told.empty());
}

TEST_CASE("a pod that the server fails to show is not looked at for ever") {
  Reported reports;
  int looks = 0;
  for (auto due = reports.queue.due(); due && looks < 20; due = reports.queue.due(), ++looks) {
    REQUIRE(reports.next(due->time_since_epoch()) == read_a);
    reports.queue.postponed(true, *due);
  }
  CHECK(looks == 7);
}

TEST_CASE("whatever was written over the status of an evicted pod, and whenever, it ends as evictd wrote it") {
  struct Overwritten {
    core::Duration time;
    std::string phase;
  };
  const std::vector<Overwritten> cases{
      {500ms, "Running"}, {1s, "Running"}, {1500ms, "Failed"}, {5s, "Running"}, {11s, "Running"}};
  for (const auto& overwritten_by : cases) {
    const auto time = overwritten_by.time;
    const auto phase = overwritten_by.phase;
    CAPTURE(phase);
    Reported reports;
    bool overwritten = false;
    for (auto due = reports.queue.due(); due; due = reports.queue.due()) {
      if (!overwritten && due->time_since_epoch() >= time) reports.server.overwrite("default/a", phase);
      overwritten = overwritten || due->time_since_epoch() >= time;
      reports.send(reports.server, due->time_since_epoch());
    }
    CHECK(reports.says_evicted());
    CHECK(reports.server.log == std::vector<std::string>{"status a-uid", "event a-uid", "status a-uid"});
    CHECK(reports.queue.counts().statuses == 2);
    CHECK(reports.queue.counts().statuses_again == 1);
    CHECK(reports.told ==
          std::vector<std::string>{"default/a: was evicted, but its status says " + phase + ": it is written again"});
  }
}

TEST_CASE("a status that is overwritten again and again is written six times, ever more seldom, then given up") {
  Reported reports;
  std::vector<core::Duration> written{0s};
  for (auto due = reports.queue.due(); due; due = reports.queue.due()) {
    const auto time = due->time_since_epoch();
    const auto before = reports.queue.counts().statuses;
    if (before == written.size()) reports.server.overwrite("default/a");
    reports.send(reports.server, time);
    if (reports.queue.counts().statuses > before) written.push_back(time);
  }
  CHECK(written == std::vector<core::Duration>{0s, 1s, 3s, 6s, 11s, 20s});
  CHECK(reports.queue.counts().dropped == 1);
  CHECK(reports.told.back() ==
        "default/a: its status says Running again, though evictd wrote 6 times that the pod was evicted: it is left at "
        "that; with kubernetes.report: delete the object would be deleted");
  CHECK_FALSE(reports.queue.seen("a-uid", "Running", "", at(1min)));
  CHECK(reports.next(1min) == "nothing");

  SUBCASE("until it is evicted again") {
    reports.queue.evicted(eviction("a"), at(2min));
    reports.send(reports.server, 2min);
    CHECK(reports.says_evicted());
    CHECK(reports.queue.due() == at(2min + 1s));
  }
}

TEST_CASE("a pod that is gone, was deleted or has a successor by the time it is read is left alone") {
  Reported reports;
  auto& pod = reports.server.pods.at("default/a");
  SUBCASE("gone") { reports.server.pods.clear(); }
  SUBCASE("deleted, and not ended by its kubelet yet") {
    reports.server.overwrite("default/a");
    pod.deleted = true;
  }
  SUBCASE("replaced by another of its name") { pod = {.uid = "successor"}; }
  reports.send(reports.server, 1s);
  CHECK(reports.server.log == std::vector<std::string>{"status a-uid", "event a-uid"});
  CHECK_FALSE(reports.queue.due().has_value());
  CHECK(reports.queue.counts().dropped == 0);
  CHECK(reports.told.empty());
}

TEST_CASE("where the watch shows the pod as it was written, nothing is read") {
  Reported reports;
  CHECK_FALSE(reports.queue.seen("a-uid", "Failed", "Evicted", at(10ms)));
  CHECK_FALSE(reports.queue.due().has_value());

  SUBCASE("also if it did before the answer came") {
    reports.queue.evicted(eviction("a"), at(1s));
    CHECK(reports.next(1s) == write_a);
    reports.queue.seen("a-uid", "Failed", "Evicted", at(1s));
    reports.answer(ok, 1s);
    CHECK(reports.next(1s) == "POST /api/v1/namespaces/default/events");
    reports.answer(ok, 1s);
    CHECK_FALSE(reports.queue.due().has_value());
  }
  SUBCASE("until it shows something else: then at once") {
    reports.server.overwrite("default/a");
    CHECK(reports.queue.seen("a-uid", "Running", "", at(5s)));
    reports.send(reports.server, 5s);
    CHECK(reports.says_evicted());
    CHECK_FALSE(reports.queue.seen("b-uid", "Running", "", at(5s)));
  }
}

TEST_CASE("what the watch shows is not believed without a look, and a look that was under way is taken again") {
  Reported reports;
  CHECK(reports.queue.seen("a-uid", "Running", "", at(10ms)));  // it is behind
  CHECK(reports.next(10ms) == read_a);
  reports.answer(reports.server.handle({.method = "GET", .target = "/api/v1/namespaces/default/pods/a"}), 11ms);
  CHECK(reports.queue.due() == at(1s));

  CHECK(reports.next(1s) == read_a);
  const auto before = reports.server.handle({.method = "GET", .target = "/api/v1/namespaces/default/pods/a"});
  reports.server.overwrite("default/a");
  CHECK(reports.queue.seen("a-uid", "Running", "", at(1s)));
  reports.answer(before, 1s);
  reports.send(reports.server, 1s);
  CHECK(reports.says_evicted());
}

TEST_CASE("a read that is forbidden is told and asked for again, and holds up no other report") {
  Reported reports;
  reports.server.forbidden = {"get pods"};
  reports.server.overwrite("default/a");
  reports.send(reports.server, 1s);
  CHECK(reports.told.size() == 1);
  CHECK(reports.told.front().starts_with("the API server forbids evictd to get pods"));
  CHECK(reports.queue.waiting() == 0);
  reports.server.forbidden.clear();
  reports.send(reports.server, 6s);
  CHECK(reports.says_evicted());
}

TEST_CASE("where no pod may be read one asks for all, and what could only be read late is not written again") {
  Reports reports;
  ModelServer server;
  server.forbidden = {"get pods"};
  for (int i = 0; i < 200; ++i) {
    const auto name = "p" + std::to_string(i);
    server.pods["default/" + name] = {.uid = name + "-uid"};
    reports.queue.evicted(eviction(name), at(0s));
  }
  reports.send(server, 0s);
  for (auto& [key, pod] : server.pods) server.overwrite(key);
  int looks = 0;
  const auto round = [&](core::Duration time) {
    int in_round = 0;
    while (const auto request = reports.queue.next(at(time))) {
      in_round += request->method == "GET" ? 1 : 0;
      const auto response = server.handle(*request);
      reports.queue.answered(judge(response), response.body, at(time));
    }
    CHECK(in_round <= 10);
    looks += in_round;
  };
  for (auto time = 1s; time <= 30s; ++time) {
    if (time == 3s || time == 20s)  // the watch shows what was written over it
      for (int i = 0; i < 200; ++i) reports.queue.seen("p" + std::to_string(i) + "-uid", "Running", "", at(time));
    round(time);
  }
  CHECK(looks >= 2);
  CHECK_FALSE(reports.queue.due().has_value());
  CHECK(reports.told.size() == 1);
  server.forbidden.clear();
  round(1h);
  for (const auto& [key, pod] : server.pods) CHECK(pod.modifications == 1);

  // The next one finds that it is allowed.
  server.pods["default/a"] = {.uid = "a-uid"};
  reports.queue.evicted(eviction("a"), at(1h));
  reports.send(server, 1h);
  server.overwrite("default/a");
  reports.send(server, 1h + 1s);
  CHECK(server.pods.at("default/a").phase == "Failed");
}

TEST_CASE("a kubelet that has started the pod again, and says so, learns of the eviction by its status all the same") {
  Reported reports;
  reports.queue.returned("a-uid", at(0s));
  reports.server.overwrite("default/a");
  CHECK(reports.queue.due() == at(1s));
  reports.send(reports.server, 1s);
  CHECK(reports.says_evicted());
  SUBCASE("but not once the server failed or was away meanwhile") {
    const bool failed = true;
    for (const bool at_fault : {failed, !failed}) {
      CHECK(reports.next(2s) == read_a);
      reports.queue.postponed(at_fault, at(2s));
      reports.queue.returned("a-uid", at(at_fault ? 2s : 1min));
      CHECK_FALSE(reports.queue.due().has_value());
      CHECK(reports.queue.counts().gone == 0);
      reports.server.overwrite("default/a");
      CHECK(reports.queue.seen("a-uid", "Running", "", at(2s)));
    }
  }
}

TEST_CASE("with report: delete the object is gone, and nothing is read") {
  Reports reports{{.report = ReportMode::Delete}};
  ModelServer server;
  server.pods["default/a"] = {.uid = "a-uid"};
  reports.queue.evicted(eviction("a"), at(0s));
  reports.send(server, 0s);
  CHECK_FALSE(reports.queue.due().has_value());
}

TEST_CASE("of as many pods as are remembered a status that was overwritten is written again") {
  Reports reports{{.remembered = 2}};
  ModelServer server;
  for (const auto* name : {"a", "b", "c"}) {
    server.pods[std::string("default/") + name] = {.uid = std::string(name) + "-uid"};
    reports.queue.evicted(eviction(name), at(0s));
  }
  reports.send(server, 0s);
  CHECK_FALSE(reports.queue.seen("a-uid", "Running", "", at(0s)));
  CHECK(reports.queue.seen("b-uid", "Running", "", at(0s)));
  CHECK(reports.queue.seen("c-uid", "Running", "", at(0s)));
}

}  // namespace evictd::kube::rewritten_status_test
