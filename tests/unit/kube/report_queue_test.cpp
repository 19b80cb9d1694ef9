#include "kube/report_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "fixture/random.hpp"
#include "kube/model_server.hpp"

namespace evictd::kube::report_queue_test {
namespace {

using namespace std::chrono_literals;
using fixture::ModelServer;
using fixture::refusal;
using enum core::NodeCondition;

constexpr core::Instant at(core::Duration time) { return core::Instant{time}; }
WallTime wall(core::Instant time) {
  return WallTime{std::chrono::duration_cast<WallTime::duration>(time.time_since_epoch())};
}

Eviction eviction(const std::string& name, const std::string& uid) {
  return {.name_space = "default", .name = name, .uid = uid, .message = {"why. ", {}}, .time = WallTime{}};
}

const Response busy{.status = 503};
Result<Response> lost() { return fail("the connection was lost"); }

/// The queue under test without jitter: every delay is the longest.
struct Queue {
  std::vector<std::string> told;
  ReportQueue queue;

  explicit Queue(ReportOptions options = {})
      : queue{with_node(std::move(options)), [] { return 0.999'999; },
              [this](os::LogLevel, const std::string& line) { told.push_back(line); }} {}

  static ReportOptions with_node(ReportOptions options) {
    options.node = "node-1";
    return options;
  }
  std::string next(core::Duration time) {
    const auto request = queue.next(at(time), wall(at(time)));
    return request ? request->method + " " + request->target : "nothing";
  }
  void answer(const Result<Response>& response, core::Duration time) { queue.answered(response, at(time)); }
  /// In whole milliseconds, rounded up.
  [[nodiscard]] std::optional<core::Duration> due() const {
    const auto due = queue.due();
    if (!due) return std::nullopt;
    return std::chrono::ceil<std::chrono::milliseconds>(due->time_since_epoch());
  }
};

const Response ok{.status = 200, .body = "{}"};

}  // namespace

TEST_CASE("one request at a time, the node's state before the pods'") {
  Queue queue{{.node_conditions = NodeConditionMode::Taints}};
  queue.queue.evicted(eviction("a", "1"), at(0s));
  queue.queue.node_conditions({}, at(0s), wall(at(0s)));
  CHECK(queue.next(0s) == "GET /api/v1/nodes/node-1");
  CHECK(queue.next(0s) == "nothing");
  CHECK_FALSE(queue.due().has_value());
  queue.answer(Response{.status = 200, .body = R"({"metadata": {"resourceVersion": "1"}})"}, 0s);
  CHECK(queue.next(0s) == "PATCH /api/v1/namespaces/default/pods/a/status");
}

TEST_CASE("while the API server is away everything waits, longer each time, and it is told once") {
  Queue queue;
  queue.queue.evicted(eviction("a", "1"), at(0s));
  core::Duration time{};
  std::vector<core::Duration> delays;
  for (int i = 0; i < 9; ++i) {
    REQUIRE(queue.next(time) == "PATCH /api/v1/namespaces/default/pods/a/status");
    queue.answer(lost(), time);
    CHECK(queue.next(time) == "nothing");
    REQUIRE(queue.due().has_value());
    delays.push_back(*queue.due() - time);
    time = *queue.due();
  }
  CHECK(delays == std::vector<core::Duration>{500ms, 1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s});
  CHECK(queue.told == std::vector<std::string>{"reports to the API server wait: the connection was lost"});
  CHECK(queue.queue.status().last_error == "the connection was lost");
  CHECK_FALSE(queue.queue.status().last_success.has_value());
  CHECK(queue.queue.status().oldest == at(0s));

  CHECK(queue.next(time) != "nothing");
  queue.answer(ok, time);
  CHECK(queue.told.back() == "the API server takes reports again; 2 wait");
  CHECK(queue.next(time) == "POST /api/v1/namespaces/default/events");
  queue.answer(lost(), time);
  CHECK(*queue.due() - time == 500ms);  // it was there: the delays begin anew
}

TEST_CASE("Retry-After is kept to, also beyond the own delay") {
  for (const auto code : {429, 503}) {
    Queue queue;
    queue.queue.evicted(eviction("a", "1"), at(0s));
    queue.queue.evicted(eviction("b", "2"), at(0s));
    queue.next(0s);
    queue.answer(Response{.status = code, .retry_after = 20s}, 0s);
    CHECK(queue.next(19'999ms) == "nothing");
    CHECK(*queue.due() == 20s + 500ms);
    CHECK(queue.next(21s) != "nothing");
  }
}

TEST_CASE("a server that fails at one report is asked for another after the pause") {
  Queue queue;
  queue.queue.evicted(eviction("a", "1"), at(0s));
  queue.queue.evicted(eviction("b", "2"), at(0s));
  CHECK(queue.next(0s).ends_with("pods/a/status"));
  queue.answer(refusal(500, "InternalError", "webhook failed"), 0s);
  CHECK(queue.next(499ms) == "nothing");
  CHECK(queue.next(500ms).ends_with("pods/b/status"));
  CHECK(queue.told == std::vector<std::string>{"reports to the API server wait: webhook failed (500)"});
}

TEST_CASE("a report that a proxy refuses waits for a better answer, and others go first") {
  Queue queue;
  queue.queue.evicted(eviction("a", "1"), at(0s));
  queue.queue.evicted(eviction("b", "2"), at(0s));
  CHECK(queue.next(0s).ends_with("pods/a/status"));
  queue.answer(Response{.status = 404, .body = "404 page not found"}, 0s);
  CHECK(queue.next(500ms).ends_with("pods/b/status"));
  queue.answer(refusal(404, "NotFound", "pods \"b\" not found"), 500ms);
  CHECK(queue.queue.status().written.gone == 1);
  CHECK(queue.queue.status().waiting == 3);  // the Event of b may be told all the same
}

TEST_CASE("a server that fails at everything is told of the node first once it is back") {
  Queue queue{{.node_conditions = NodeConditionMode::Conditions}};
  queue.queue.evicted(eviction("a", "1"), at(0s));
  queue.queue.evicted(eviction("b", "2"), at(0s));
  queue.queue.node_conditions({MemoryPressure}, at(0s), wall(at(0s)));
  const Response failing{.status = 503};
  core::Duration time = 0s;
  for (int tries = 0; tries < 5; ++tries, time = *queue.due()) {
    CHECK(queue.next(time) == "GET /api/v1/nodes/node-1");
    queue.answer(failing, time);
    time = *queue.due();
    CHECK(queue.next(time).ends_with("/status"));
    queue.answer(failing, time);
  }
  CHECK(queue.next(time) == "GET /api/v1/nodes/node-1");
}

TEST_CASE("a server that fails at the node's state is told of pods after each pause, however long it is") {
  Queue queue{{.node_conditions = NodeConditionMode::Conditions}};
  queue.queue.evicted(eviction("a", "1"), at(0s));
  queue.queue.node_conditions({MemoryPressure}, at(0s), wall(at(0s)));
  const Response failing{.status = 503, .retry_after = 10s};
  SUBCASE("it is not even read") {
    CHECK(queue.next(0s) == "GET /api/v1/nodes/node-1");
    queue.answer(failing, 0s);
    CHECK(queue.next(11s) == "PATCH /api/v1/namespaces/default/pods/a/status");
  }
  SUBCASE("conditions and taints are both refused by a webhook") {
    queue.next(0s);
    queue.answer(Response{.status = 200, .body = R"({"metadata": {"resourceVersion": "1"}})"}, 0s);
    CHECK(queue.next(0s) == "PATCH /api/v1/nodes/node-1/status");
    queue.answer(failing, 0s);
    CHECK(queue.next(11s) == "PATCH /api/v1/namespaces/default/pods/a/status");
    queue.answer(ok, 11s);
    CHECK(queue.next(11s) == "PATCH /api/v1/nodes/node-1");
    queue.answer(failing, 11s);
    CHECK(queue.next(22s) == "POST /api/v1/namespaces/default/events");
    queue.answer(ok, 22s);
    CHECK(queue.next(22s) == "PATCH /api/v1/nodes/node-1/status");
  }
  SUBCASE("where it does not answer at all it is told of the node first all the same") {
    queue.next(0s);
    queue.answer(lost(), 0s);
    CHECK(queue.next(1s) == "GET /api/v1/nodes/node-1");
  }
}

TEST_CASE("credentials that are not accepted pause everything and keep the report") {
  Queue queue;
  queue.queue.evicted(eviction("a", "1"), at(0s));
  queue.next(0s);
  queue.answer(refusal(401, "Unauthorized", "Unauthorized"), 0s);
  CHECK(queue.told == std::vector<std::string>{"reports to the API server wait: the API server does not accept "
                                               "evictd's credentials: Unauthorized (401)"});
  CHECK(queue.next(1s).ends_with("pods/a/status"));
}

TEST_CASE("the status tells what waits, what was written and what went wrong") {
  Queue queue{{.node_conditions = NodeConditionMode::Conditions}};
  CHECK(queue.queue.status().waiting == 0);
  queue.queue.evicted(eviction("a", "1"), at(1s));
  queue.queue.node_conditions({}, at(1s), wall(at(1s)));
  CHECK(queue.queue.status().waiting == 3);
  ModelServer server;
  server.pods["default/a"] = {.uid = "1"};
  server.forbidden = {"create events"};
  while (const auto request = queue.queue.next(at(2s), wall(at(2s))))
    queue.queue.answered(server.handle(*request), at(2s));
  const auto status = queue.queue.status();
  CHECK(status.waiting == 1);
  CHECK(status.oldest == at(1s));
  CHECK(status.last_success == at(2s));
  CHECK(status.last_failure == at(2s));
  CHECK(status.last_error == "events is forbidden (403)");
  CHECK(status.written.statuses == 1);
  CHECK(status.written.events == 0);
  CHECK(status.node_updates == 1);
}

TEST_CASE("a refusal is no success, though the server is there") {
  Queue queue;
  queue.queue.evicted(eviction("a", "1"), at(0s));
  queue.next(1s);
  queue.answer(refusal(403, "Forbidden", "pods is forbidden"), 1s);
  CHECK_FALSE(queue.queue.status().last_success.has_value());
  CHECK(queue.queue.status().last_failure == at(1s));
  CHECK(queue.next(2s) != "nothing");
  queue.answer(ok, 2s);
  CHECK(queue.queue.status().last_success == at(2s));
}

namespace {

/// A node under evictions with an API server of any mood: requests and answers get lost, pods are replaced by others of
/// the same name, others write to the node.
class Storm {
 public:
  Storm(std::uint64_t seed, ReportMode mode)
      : random_{seed},
        mode_{mode},
        options_{.node = "node-1",
                 .report = mode,
                 .node_conditions = random_.pick({NodeConditionMode::Conditions, NodeConditionMode::Taints}),
                 .capacity = 100,
                 .start_delay = std::chrono::seconds{random_.between(0, 30)}},
        queue_{options_, [this] { return static_cast<double>(random_.between(0, 999)) / 1000; },
               [](os::LogLevel, const std::string&) {}} {
    server_.refuses_uid_as_invalid = random_.chance(50);
    for (int i = 0; i < 8; ++i) create(name(i));
  }

  void run() {
    constexpr int busy_steps = 400;
    for (int step = 0; step < busy_steps; ++step) {
      happen();
      send(random_.between(0, 60));
    }
    // In the end all is well.
    settle();
    for (const auto end = now_ + std::chrono::minutes{1}; now_ < end;) send(0);
    settle();
  }

  void check() const {
    for (const auto& uid : evicted_) {
      CAPTURE(uid);
      CHECK(std::ranges::count(server_.log, "event " + uid) == 1);
      // A pod that others deleted meanwhile was reported or not, depending on who came first; never twice.
      const auto written = std::ranges::count(server_.log, "status " + uid);
      const bool overwritten = overwritten_.contains(uid);
      CHECK(written <= (overwritten ? 2 : 1));
      CHECK(std::ranges::count(server_.log, "delete " + uid) <= 1);
      if (gone_.contains(uid)) continue;
      CHECK(written >= 1);
      CHECK(std::ranges::count(server_.log, "delete " + uid) == (mode_ == ReportMode::Delete ? 1 : 0));
      CHECK(position("status " + uid) < position("event " + uid));
      if (mode_ == ReportMode::Delete) CHECK(position("status " + uid) < position("delete " + uid));
    }
    for (const auto& [key, pod] : server_.pods)
      if (!evicted_.contains(pod.uid)) CHECK(pod.modifications == 0);
    for (const auto& [key, pod] : server_.pods)
      if (evicted_.contains(pod.uid)) CHECK((pod.phase == "Failed" && pod.reason == "Evicted"));
    for (const auto& [uid, count] : server_.deleted) CHECK(evicted_.contains(uid));
    check_node();
    CHECK(longest_ <= options_.capacity);
    CHECK(requests_ < 20'000);
  }

 private:
  void settle() {
    for (int step = 0; (queue_.status().waiting > 0 || step == 0) && step < 10'000; ++step) send(0);
    REQUIRE(queue_.status().waiting == 0);
  }

  static std::string name(std::int64_t i) { return "pod-" + std::to_string(i); }

  void create(const std::string& name) {
    server_.pods["default/" + name] = {.uid = name + "-" + std::to_string(++uids_)};
  }

  void happen() {
    const auto pod = name(random_.between(0, 7));
    const auto found = server_.pods.find("default/" + pod);
    switch (random_.between(0, 9)) {
      case 0:
      case 1: {
        if (found == server_.pods.end()) return create(pod);
        const auto uid = found->second.uid;
        CHECK(queue_.evicted(eviction(pod, uid), now_));
        evicted_.insert(uid);
        return;
      }
      case 2:  // a controller replaces the pod under the same name
        if (found != server_.pods.end()) gone_.insert(found->second.uid);
        return create(pod);
      case 3: {
        conditions_.clear();
        for (const auto condition : {MemoryPressure, DiskPressure, PidPressure})
          if (random_.chance(40)) conditions_.insert(condition);
        told_node_ = true;
        return queue_.node_conditions(conditions_, now_, wall(now_));
      }
      case 4: return server_.toggle_foreign_taint();
      case 5: outage_ = random_.chance(40); return;
      case 6: {  // a kubelet has not noticed the end, once
        if (found == server_.pods.end() || found->second.phase != "Failed") return;
        const auto uid = found->second.uid;
        if (!overwritten_.insert(uid).second) return;
        server_.overwrite("default/" + pod);
        queue_.seen(uid, "Running", "", now_);
        return;
      }
      default: return;
    }
  }

  /// Lets time pass and sends what becomes due.
  void send(int trouble) {
    longest_ = std::max(longest_, queue_.waiting());
    const auto due = queue_.due();
    if (!due || (trouble > 0 && random_.chance(30))) {
      now_ += std::chrono::milliseconds{random_.between(1, 3000)};
      return;
    }
    now_ = std::max(now_, *due);
    const auto request = queue_.next(now_, wall(now_));
    if (!request) return;
    ++requests_;
    CHECK_FALSE(queue_.next(now_, wall(now_)).has_value());
    now_ += std::chrono::milliseconds{random_.between(0, 50)};
    queue_.answered(answer(*request, trouble), now_);
  }

  Result<Response> answer(const Request& request, int trouble) {
    if (trouble == 0) outage_ = false;
    if (outage_) return lost();
    if (!random_.chance(trouble)) return server_.handle(request);
    switch (random_.between(0, 6)) {
      case 0: return lost();
      case 1: static_cast<void>(server_.handle(request)); return lost();
      case 2: static_cast<void>(server_.handle(request)); return Response{.status = 504};
      case 3: return Response{.status = 429, .retry_after = std::chrono::seconds{random_.between(0, 5)}};
      case 4: return refusal(500, "InternalError", "something");
      case 5: return refusal(401, "Unauthorized", "Unauthorized");
      default: return busy;
    }
  }

  [[nodiscard]] std::ptrdiff_t position(const std::string& entry) const {
    return std::ranges::find(server_.log, entry) - server_.log.begin();
  }

  void check_node() const {
    if (!told_node_) return;
    for (const auto condition : {MemoryPressure, DiskPressure, PidPressure}) {
      CAPTURE(core::name(condition));
      const bool holds = conditions_.contains(condition);
      CHECK(server_.node.taints.contains(taint_key(condition)) == holds);
      if (options_.node_conditions == NodeConditionMode::Conditions)
        CHECK(server_.node.conditions.at(std::string(core::name(condition))) == (holds ? "True" : "False"));
      else
        CHECK(server_.node.conditions.empty());
    }
  }

  fixture::Random random_;
  ReportMode mode_;
  ReportOptions options_;
  ReportQueue queue_;
  ModelServer server_;
  core::Instant now_{};
  std::set<std::string> evicted_;      // uids told to the queue
  std::set<std::string> gone_;         // uids that others took away
  std::set<std::string> overwritten_;  // uids whose status a kubelet wrote over
  core::NodeConditions conditions_;
  bool told_node_ = false;
  bool outage_ = false;
  int uids_ = 0;
  int requests_ = 0;
  std::size_t longest_ = 0;
};

}  // namespace

TEST_CASE(
    "whatever gets lost, every eviction is reported once, in order, and to no other pod, and what is written over it "
    "does not stay") {
  for (const auto seed : fixture::seeds(60)) {
    CAPTURE(seed);
    for (const auto mode : {ReportMode::Status, ReportMode::Delete}) {
      Storm storm{seed, mode};
      storm.run();
      storm.check();
    }
  }
}

}  // namespace evictd::kube::report_queue_test
