#include "kube/node_report.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "kube/model_server.hpp"

namespace evictd::kube::node_report_test {
namespace {

using namespace std::chrono_literals;
using fixture::ModelServer;
using enum core::NodeCondition;

constexpr core::Instant at(core::Duration time) { return core::Instant{time}; }
WallTime wall(core::Duration time) { return WallTime{std::chrono::duration_cast<WallTime::duration>(time)}; }

/// A node's report against a server that answers at once.
struct Reported {
  ReportOptions options;
  std::vector<std::string> told;
  ModelServer server;
  double random = 0.5;  // what the next random number is
  NodeReport report;

  explicit Reported(NodeConditionMode mode, core::Duration start_delay = {})
      : options{.node = "node-1", .node_conditions = mode, .start_delay = start_delay},
        report{options, [this](os::LogLevel, const std::string& line) { told.push_back(line); },
               [this] { return random; }} {}

  void set(const core::NodeConditions& conditions, core::Duration time) {
    report.set(conditions, at(time), wall(time));
  }
  /// Sends what is due; how many requests that took.
  int send(core::Duration time) {
    int requests = 0;
    while (const auto request = report.next(at(time), wall(time))) {
      REQUIRE(++requests < 20);
      const auto response = server.handle(*request);
      report.answered(judge(response), response.body, at(time));
    }
    return requests;
  }
  /// Sends what is due first, at 0 s: the node is read.
  void send_one() {
    const auto request = report.next(at(0s), wall(0s));
    REQUIRE(request.has_value());
    const auto response = server.handle(*request);
    report.answered(judge(response), response.body, at(0s));
  }
  [[nodiscard]] bool has_taint(std::string_view key) const { return server.node.taints.contains(key); }
};

}  // namespace

TEST_CASE("at the start the node is told what is true now, conditions before taints") {
  Reported node{NodeConditionMode::Conditions};
  CHECK(node.send(0s) == 0);
  node.set({MemoryPressure}, 0s);
  CHECK(node.report.waits());
  CHECK(node.send(0s) == 3);
  CHECK(node.server.log == std::vector<std::string>{"conditions", "taints"});
  CHECK(node.server.node.conditions == std::map<std::string, std::string>{{"DiskPressure", "False"},
                                                                          {"MemoryPressure", "True"},
                                                                          {"PIDPressure", "False"}});
  CHECK(node.has_taint("node.kubernetes.io/memory-pressure"));
  CHECK_FALSE(node.report.waits());
  CHECK(node.report.updates() == 2);
}

TEST_CASE("with nodeConditions: none nothing is written") {
  Reported node{NodeConditionMode::None};
  node.set({MemoryPressure}, 0s);
  CHECK(node.send(10min) == 0);
  CHECK_FALSE(node.report.due().has_value());
}

TEST_CASE("the first report waits for its share of the start, later ones do not") {
  Reported node{NodeConditionMode::Conditions, 30s};
  node.set({}, 0s);
  CHECK(node.send(29s) == 0);
  CHECK(node.report.due() == at(30s));
  CHECK(node.send(30s) == 2);
  node.set({DiskPressure}, 31s);
  CHECK(node.send(31s) == 2);
}

TEST_CASE("a change and its end are one patch of the conditions and one of the taints") {
  Reported node{NodeConditionMode::Conditions};
  node.set({}, 0s);
  CHECK(node.send(0s) == 2);  // the node is read once, and has no taints
  node.set({MemoryPressure}, 10s);
  CHECK(node.send(10s) == 2);
  CHECK(node.server.node.transitions.at("MemoryPressure") == "1970-01-01T00:00:10Z");
  CHECK(node.server.node.transitions.at("DiskPressure") == "1970-01-01T00:00:00Z");
  node.set({}, 20s);
  CHECK(node.send(20s) == 2);
  CHECK(node.server.node.transitions.at("MemoryPressure") == "1970-01-01T00:00:20Z");
  CHECK_FALSE(node.has_taint("memory-pressure"));
}

TEST_CASE("only the last state counts") {
  Reported node{NodeConditionMode::Conditions};
  node.set({MemoryPressure}, 0s);
  node.set({MemoryPressure, DiskPressure}, 1s);
  node.set({DiskPressure}, 2s);
  CHECK(node.send(3s) == 3);
  CHECK(node.server.node.conditions.at("MemoryPressure") == "False");
  CHECK(node.server.node.conditions.at("DiskPressure") == "True");
  CHECK(node.server.node.transitions.at("DiskPressure") == "1970-01-01T00:00:01Z");
}

TEST_CASE("what changes while a request is under way is written after it") {
  Reported node{NodeConditionMode::Conditions};
  node.set({MemoryPressure}, 0s);
  node.send_one();
  const auto patch = node.report.next(at(0s), wall(0s));
  REQUIRE(patch.has_value());
  node.set({}, 1s);
  const auto response = node.server.handle(*patch);
  node.report.answered(judge(response), response.body, at(1s));
  node.send(1s);
  CHECK(node.server.node.conditions.at("MemoryPressure") == "False");
  CHECK_FALSE(node.has_taint("memory-pressure"));
}

TEST_CASE("the same again is no change") {
  Reported node{NodeConditionMode::Conditions};
  node.set({}, 0s);
  node.send(0s);
  node.set({}, 1s);
  CHECK(node.send(1s) == 0);
}

TEST_CASE("conditions that evictd owns are confirmed every five minutes, by one request") {
  Reported node{NodeConditionMode::Conditions};
  node.set({MemoryPressure}, 0s);
  node.send(0s);
  CHECK(node.send(299s) == 0);
  CHECK(node.report.due() == at(5min));
  CHECK(node.send(5min) == 1);
  CHECK(node.server.node.heartbeat == "1970-01-01T00:05:00Z");
  CHECK(node.server.node.transitions.at("MemoryPressure") == "1970-01-01T00:00:00Z");
  CHECK(node.send(10min) == 1);
}

TEST_CASE("nodes that were told together do not confirm together: each time is random, five minutes on average") {
  Reported node{NodeConditionMode::Conditions};
  node.random = 0;
  node.set({}, 0s);
  node.send(0s);
  CHECK(node.report.due() == at(150s));
  node.random = 0.9;
  CHECK(node.send(150s) == 1);
  CHECK(node.report.due() == at(150s + 420s));
}

TEST_CASE("beside a kubelet only the taints are written, and looked after while there is pressure") {
  Reported node{NodeConditionMode::Taints};
  node.set({}, 0s);
  CHECK(node.send(0s) == 1);  // what an earlier evictd left is not there
  CHECK_FALSE(node.report.due().has_value());
  node.set({MemoryPressure}, 10s);
  CHECK(node.send(10s) == 2);
  CHECK(node.server.node.condition_patches == 0);
  CHECK(node.has_taint("memory-pressure"));

  node.server.node.taints = "[]";  // the node lifecycle controller does not find it in the conditions
  ++node.server.node.version;
  CHECK(node.send(60s) == 0);
  CHECK(node.send(10s + 5min) == 2);
  CHECK(node.has_taint("memory-pressure"));

  node.set({}, 6min);
  CHECK(node.send(6min) == 2);
  CHECK_FALSE(node.has_taint("memory-pressure"));
  CHECK_FALSE(node.report.due().has_value());
}

TEST_CASE("a taint left by an earlier run goes at the start") {
  Reported node{NodeConditionMode::Taints};
  node.server.node.taints = R"([{"key":"node.kubernetes.io/disk-pressure","effect":"NoSchedule"}])";
  node.set({}, 0s);
  CHECK(node.send(0s) == 2);
  CHECK_FALSE(node.has_taint("disk-pressure"));
}

TEST_CASE("a node that changed in between is read again, and others' taints stay") {
  Reported node{NodeConditionMode::Taints};
  node.set({MemoryPressure}, 0s);
  node.send_one();
  node.server.toggle_foreign_taint();
  CHECK(node.send(0s) == 3);  // a patch that is too late, a look, a patch
  CHECK(node.has_taint("memory-pressure"));
  CHECK(node.has_taint("example.com/maintenance"));
}

TEST_CASE("who loses every race does not race at full speed") {
  Reported node{NodeConditionMode::Taints};
  node.set({MemoryPressure}, 0s);
  int requests = 0;
  while (const auto request = node.report.next(at(0s), wall(0s))) {
    REQUIRE(++requests < 20);
    if (request->method == "PATCH") node.server.toggle_foreign_taint();
    const auto response = node.server.handle(*request);
    node.report.answered(judge(response), response.body, at(0s));
  }
  CHECK(requests == 8);
  CHECK(node.report.due() == at(1s));
  CHECK(node.send(1s) == 2);
}

TEST_CASE("a right that is missing for one half does not keep the other back") {
  SUBCASE("taints, as for a kubelet's own credentials (NodeRestriction)") {
    Reported node{NodeConditionMode::Conditions};
    node.server.forbidden = {"patch nodes"};
    node.set({MemoryPressure}, 0s);
    node.send(0s);
    CHECK(node.server.node.conditions.at("MemoryPressure") == "True");
    CHECK(node.told.size() == 1);
    CHECK(node.told.front().starts_with("the API server forbids evictd to patch nodes, which needs a role"));
    node.server.forbidden.clear();
    node.send(5min);
    CHECK(node.has_taint("memory-pressure"));
  }
  SUBCASE("conditions") {
    Reported node{NodeConditionMode::Conditions};
    node.server.forbidden = {"patch nodes/status"};
    node.set({MemoryPressure}, 0s);
    node.send(0s);
    CHECK(node.has_taint("memory-pressure"));
    CHECK(node.report.waits());
    node.server.forbidden.clear();
    node.send(5min);
    CHECK(node.server.node.conditions.at("MemoryPressure") == "True");
    CHECK_FALSE(node.report.waits());
  }
  SUBCASE("and it is told once, however often the other half is confirmed") {
    Reported node{NodeConditionMode::Conditions};
    node.server.forbidden = {"patch nodes"};
    node.set({MemoryPressure}, 0s);
    int requests = 0;
    for (int minute = 0; minute <= 60; minute += 5) requests += node.send(std::chrono::minutes{minute});
    CHECK(node.told.size() == 1);
    CHECK(node.report.updates() > 10);  // the conditions
    CHECK(requests == 1 + 2 * 13);
    node.server.forbidden.clear();
    node.send(65min);
    CHECK(node.has_taint("memory-pressure"));
    node.server.forbidden = {"patch nodes"};
    node.set({}, 66min);
    node.send(66min);
    CHECK(node.told.size() == 2);  // it was allowed in between
  }
  SUBCASE("reading") {
    Reported node{NodeConditionMode::Conditions};
    node.server.forbidden = {"get nodes"};
    node.set({MemoryPressure}, 0s);
    CHECK(node.send(0s) == 1);
    CHECK(node.report.due() == at(5s));
    node.server.forbidden.clear();
    CHECK(node.send(5min) == 3);
  }
}

TEST_CASE("conditions that the server fails at do not keep the taints back, and are written later") {
  Reported node{NodeConditionMode::Conditions};
  node.set({MemoryPressure}, 0s);
  node.send_one();
  REQUIRE(node.report.next(at(0s), wall(0s)).value_or(Request{}).target.ends_with("/status"));
  node.report.postponed(true, at(500ms));
  CHECK(node.report.due() == at(0s));  // the taints
  CHECK(node.send(500ms) == 1);
  CHECK(node.has_taint("node.kubernetes.io/memory-pressure"));
  CHECK(node.report.due() == at(1500ms));
  REQUIRE(node.report.next(at(1500ms), wall(1500ms)).value_or(Request{}).target.ends_with("/status"));
  node.report.postponed(true, at(2s));
  CHECK(node.report.due() == at(4s));  // longer each time
  CHECK(node.send(4s) == 1);
  CHECK(node.server.node.conditions.at("MemoryPressure") == "True");
}

TEST_CASE("nothing of a node stands back that is new, or since the server fails at others as well") {
  Reported node{NodeConditionMode::Conditions};
  node.set({MemoryPressure}, 0s);
  REQUIRE(node.report.next(at(0s), wall(0s)).has_value());
  node.report.postponed(true, at(0s));
  CHECK(node.report.due() == at(1s));
  SUBCASE("other conditions") { node.set({}, 100ms); }
  SUBCASE("a shutdown") { node.report.set_shutdown(true, wall(100ms)); }
  SUBCASE("others") { node.report.forget_failures(); }
  CHECK(node.report.due() == at(0s));
}

TEST_CASE("a node that is not registered yet is told of once and awaited") {
  Reported node{NodeConditionMode::Conditions};
  node.server.node_name = "somebody else";
  node.set({MemoryPressure}, 0s);
  for (int minute = 0; minute < 5; ++minute) node.send(std::chrono::minutes{minute});
  CHECK(node.told.size() == 1);
  node.server.node_name = "node-1";
  node.send(5min);
  CHECK(node.server.node.conditions.at("MemoryPressure") == "True");
}

TEST_CASE("what is no node is told, and asked for again later") {
  Reported node{NodeConditionMode::Conditions};
  node.set({}, 0s);
  REQUIRE(node.report.next(at(0s), wall(0s)).has_value());
  node.report.answered({}, "<html>", at(0s));
  CHECK(node.told.size() == 1);
  CHECK(node.report.due() == at(5min));
  CHECK(node.send(5min) == 2);
}

TEST_CASE("a shutdown makes Ready False among the conditions, once, and its end makes it True again") {
  Reported node{NodeConditionMode::Conditions};
  node.report.set_shutdown(false, wall(0s));
  CHECK(node.send(0s) == 0);  // nothing is written before the conditions are known
  node.set({}, 0s);
  CHECK(node.send(0s) == 2);
  CHECK_FALSE(node.server.node.conditions.contains("Ready"));

  node.report.set_shutdown(true, wall(10s));
  CHECK(node.report.waits());
  CHECK(node.send(12s) == 2);
  CHECK(node.server.node.conditions.at("Ready") == "False");
  CHECK(node.server.node.reasons.at("Ready") == "KubeletNotReady");
  CHECK(node.server.node.messages.at("Ready") == "node is shutting down");
  CHECK(node.server.node.transitions.at("Ready") == "1970-01-01T00:00:10Z");
  node.report.set_shutdown(true, wall(13s));
  CHECK(node.send(13s) == 0);

  node.report.set_shutdown(false, wall(20s));
  CHECK(node.send(20s) == 2);
  CHECK(node.server.node.conditions.at("Ready") == "True");
  CHECK(node.server.node.reasons.at("Ready") == "KubeletReady");
  CHECK(node.server.node.transitions.at("Ready") == "1970-01-01T00:00:20Z");
}

TEST_CASE("a shutdown that is called off while its patch is under way is not left standing") {
  Reported node{NodeConditionMode::Conditions};
  node.set({}, 0s);
  node.report.set_shutdown(true, wall(0s));
  auto request = node.report.next(at(0s), wall(0s));
  REQUIRE(request.has_value());
  auto response = node.server.handle(*request);
  node.report.answered(judge(response), response.body, at(0s));
  request = node.report.next(at(0s), wall(0s));
  REQUIRE(request.has_value());
  node.report.set_shutdown(false, wall(1s));
  response = node.server.handle(*request);
  node.report.answered(judge(response), response.body, at(1s));
  node.send(1s);
  CHECK(node.server.node.conditions.at("Ready") == "True");
  CHECK(node.server.node.transitions.at("Ready") == "1970-01-01T00:00:01Z");
}

TEST_CASE("the next evictd, and the next boot, put back a Ready that says that the node shuts down") {
  Reported node{NodeConditionMode::Conditions};
  node.server.write_ready("False", "KubeletNotReady", "node is shutting down");
  node.set({}, 0s);
  node.send(0s);
  CHECK(node.server.node.conditions.at("Ready") == "False");  // whether it still does is not known yet
  SUBCASE("it does not") {
    node.report.set_shutdown(false, wall(1s));
    node.send(1s);
    CHECK(node.server.node.conditions.at("Ready") == "True");
  }
  SUBCASE("it does: that is not told twice") {
    node.report.set_shutdown(true, wall(1s));
    node.send(1s);
    CHECK(node.server.node.conditions.at("Ready") == "False");
    CHECK_FALSE(node.server.node.transitions.contains("Ready"));
  }
}

TEST_CASE("a Ready that is False for another reason stays as it is, in a shutdown and after it") {
  Reported node{NodeConditionMode::Conditions};
  node.server.write_ready("False", "KubeletNotReady", "network is not ready");
  node.set({}, 0s);
  node.report.set_shutdown(true, wall(0s));
  node.send(0s);
  CHECK(node.server.node.messages.at("Ready") == "network is not ready");
  node.report.set_shutdown(false, wall(10s));
  node.send(10s);
  CHECK(node.server.node.conditions.at("Ready") == "False");
  CHECK(node.server.node.messages.at("Ready") == "network is not ready");
}

TEST_CASE("who owns Ready and writes it between evictd's look and its patch is not written over") {
  Reported node{NodeConditionMode::Conditions};
  node.set({}, 0s);
  node.report.set_shutdown(true, wall(0s));
  const auto look = node.report.next(at(0s), wall(0s));
  REQUIRE(look.has_value());
  const auto response = node.server.handle(*look);
  node.report.answered(judge(response), response.body, at(0s));
  node.server.write_ready("False", "KubeletNotReady", "the runtime is down");
  CHECK(node.send(0s) == 3);  // a patch that is too late, a look, a patch without Ready
  CHECK(node.server.node.messages.at("Ready") == "the runtime is down");
}

TEST_CASE("Ready is the kubelet's where the kubelet owns the conditions") {
  for (const auto mode : {NodeConditionMode::Taints, NodeConditionMode::None}) {
    Reported node{mode};
    node.set({}, 0s);
    node.report.set_shutdown(true, wall(0s));
    node.send(0s);
    node.report.set_shutdown(false, wall(1s));
    CHECK(node.send(1s) == 0);
    CHECK(node.server.node.condition_patches == 0);
  }
}

}  // namespace evictd::kube::node_report_test
