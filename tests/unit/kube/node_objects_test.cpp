#include "kube/node_objects.hpp"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "fixture/result.hpp"

namespace evictd::kube::node_objects_test {
namespace {

using core::NodeCondition;
using fixture::error_of;
using fixture::value_of;
namespace json = boost::json;

bool same(const std::string& left, const std::string& right) { return json::parse(left) == json::parse(right); }
WallTime at(std::int64_t seconds) { return WallTime{std::chrono::seconds{seconds}}; }

constexpr auto memory = NodeCondition::MemoryPressure;
constexpr auto disk = NodeCondition::DiskPressure;
constexpr auto pid = NodeCondition::PidPressure;

}  // namespace

TEST_CASE("of a node its version, its pressure conditions and its taints are kept") {
  const auto view = value_of(parse_node(R"({
    "metadata": {"name": "n", "resourceVersion": "42"},
    "spec": {"taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "MemoryPressure", "status": "True"},
                              {"type": "PIDPressure", "status": "Unknown"}]}})"));
  CHECK(view.resource_version == "42");
  CHECK(view.conditions == std::map<NodeCondition, std::string>{{memory, "True"}, {pid, "Unknown"}});
  REQUIRE(view.ready.has_value());
  CHECK(view.ready->status == "True");
  CHECK(view.ready->reason.empty());
  CHECK(same(view.taints, R"([{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}])"));
  CHECK(value_of(parse_node(R"({"metadata": {"resourceVersion": "1"}})")).taints == "[]");
  CHECK(error_of(parse_node("{}")) == "the node read from the API server has no resourceVersion");
  CHECK(error_of(parse_node("x")).starts_with("the node read from the API server is not JSON"));
}

TEST_CASE("conditions are told in the kubelet's words") {
  const NodeView unknown{.resource_version = "1"};
  CHECK(same(conditions_patch(unknown, {memory, disk, pid}, {}, at(0)), R"({"status": {"conditions": [
    {"type": "MemoryPressure", "status": "True", "reason": "KubeletHasInsufficientMemory",
     "message": "kubelet has insufficient memory available",
     "lastHeartbeatTime": "1970-01-01T00:00:00Z", "lastTransitionTime": "1970-01-01T00:00:00Z"},
    {"type": "DiskPressure", "status": "True", "reason": "KubeletHasDiskPressure",
     "message": "kubelet has disk pressure",
     "lastHeartbeatTime": "1970-01-01T00:00:00Z", "lastTransitionTime": "1970-01-01T00:00:00Z"},
    {"type": "PIDPressure", "status": "True", "reason": "KubeletHasInsufficientPID",
     "message": "kubelet has insufficient PID available",
     "lastHeartbeatTime": "1970-01-01T00:00:00Z", "lastTransitionTime": "1970-01-01T00:00:00Z"}]}})"));
  CHECK(same(conditions_patch(unknown, {}, {}, at(0)), R"({"status": {"conditions": [
    {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory",
     "message": "kubelet has sufficient memory available",
     "lastHeartbeatTime": "1970-01-01T00:00:00Z", "lastTransitionTime": "1970-01-01T00:00:00Z"},
    {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure",
     "message": "kubelet has no disk pressure",
     "lastHeartbeatTime": "1970-01-01T00:00:00Z", "lastTransitionTime": "1970-01-01T00:00:00Z"},
    {"type": "PIDPressure", "status": "False", "reason": "KubeletHasSufficientPID",
     "message": "kubelet has sufficient PID available",
     "lastHeartbeatTime": "1970-01-01T00:00:00Z", "lastTransitionTime": "1970-01-01T00:00:00Z"}]}})"));
}

TEST_CASE("a condition that is known to the server already keeps its time of transition") {
  const NodeView view{.resource_version = "1", .conditions = {{memory, "True"}, {disk, "False"}, {pid, "Unknown"}}};
  const auto patch = json::parse(conditions_patch(view, {memory, disk}, {{memory, at(10)}, {disk, at(20)}}, at(30)));
  const auto& list = patch.at("status").at("conditions").as_array();
  CHECK_FALSE(list.at(0).as_object().contains("lastTransitionTime"));
  CHECK(list.at(1).at("lastTransitionTime") == "1970-01-01T00:00:20Z");
  CHECK(list.at(2).at("lastTransitionTime") == "1970-01-01T00:00:30Z");  // nobody says since when
  for (const auto& condition : list) CHECK(condition.at("lastHeartbeatTime") == "1970-01-01T00:00:30Z");
}

TEST_CASE("taints come and go one by one, and others' taints are carried along as they are") {
  const std::string others = R"({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
                                {"key": "node.kubernetes.io/memory-pressure", "effect": "NoExecute"})";
  const NodeView clean{.resource_version = "7", .taints = "[" + others + "]"};
  const auto added = taints_patch(clean, {memory, pid});
  REQUIRE(added.has_value());
  CHECK(same(*added, R"({"metadata": {"resourceVersion": "7"}, "spec": {"taints": [)" + others + R"(,
    {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "effect": "NoSchedule"}]}})"));

  const NodeView tainted{.resource_version = "8",
                         .taints = R"([{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule",
                                        "timeAdded": "2024-05-01T12:00:00Z"}, )" +
                                   others + "]"};
  CHECK_FALSE(taints_patch(tainted, {memory}).has_value());
  const auto removed = taints_patch(tainted, {});
  REQUIRE(removed.has_value());
  CHECK(same(*removed, R"({"metadata": {"resourceVersion": "8"}, "spec": {"taints": [)" + others + "]}}"));
  const auto exchanged = taints_patch(tainted, {disk});
  REQUIRE(exchanged.has_value());
  CHECK(same(*exchanged, R"({"metadata": {"resourceVersion": "8"}, "spec": {"taints": [)" + others + R"(,
    {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]}})"));
}

TEST_CASE("a node without our taints needs no patch while nothing is short") {
  CHECK_FALSE(taints_patch({.resource_version = "1"}, {}).has_value());
  CHECK_FALSE(
      taints_patch({.resource_version = "1", .taints = R"([{"key": "a", "effect": "NoExecute"}])"}, {}).has_value());
}

TEST_CASE("a taint that the node's own condition backs is not ours to take away") {
  const NodeView view{.resource_version = "1",
                      .conditions = {{memory, "True"}},
                      .taints = R"([{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}])"};
  CHECK_FALSE(taints_patch(view, {}).has_value());
}

namespace {

const ReadyCondition ready{.status = "True", .reason = "KubeletReady", .message = "kubelet is posting ready status"};
const ReadyCondition shutting_down{.status = "False", .reason = "KubeletNotReady", .message = "node is shutting down"};

/// What a node's patch says of Ready, and of the version that it is for; null: nothing.
json::value ready_in_patch(const std::optional<ReadyCondition>& there, const std::optional<ShutdownState>& shutdown) {
  NodeView view{.resource_version = "7"};
  view.ready = there;
  const auto patch = json::parse(conditions_patch(view, {}, {}, at(30), shutdown));
  const auto& list = patch.at("status").at("conditions").as_array();
  const bool is_told = list.back().at("type") == "Ready";
  CHECK(list.size() == (is_told ? 4 : 3));
  CHECK(patch.as_object().contains("metadata") == is_told);
  if (!is_told) return nullptr;
  CHECK(patch.at("metadata").at("resourceVersion") == "7");
  return list.back();
}

}  // namespace

TEST_CASE("a node that shuts down is not ready, in the kubelet's words, and is again when it does not") {
  CHECK(ready_in_patch(ready, ShutdownState{.pending = true, .since = at(10)}) == json::parse(R"(
    {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "node is shutting down",
     "lastHeartbeatTime": "1970-01-01T00:00:30Z", "lastTransitionTime": "1970-01-01T00:00:10Z"})"));
  CHECK(ready_in_patch(shutting_down, ShutdownState{.pending = false, .since = at(20)}) == json::parse(R"(
    {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
     "lastHeartbeatTime": "1970-01-01T00:00:30Z", "lastTransitionTime": "1970-01-01T00:00:20Z"})"));
}

TEST_CASE("Ready is left to whoever wrote it where a shutdown makes no difference") {
  const ReadyCondition no_network{.status = "False", .reason = "KubeletNotReady", .message = "network is not ready"};
  const ReadyCondition unheard{.status = "Unknown", .reason = "NodeStatusUnknown", .message = "stopped posting"};
  const std::optional<ReadyCondition> none;
  for (const auto& there : {none, std::optional(no_network), std::optional(unheard)}) {
    CHECK(ready_in_patch(there, ShutdownState{.pending = true, .since = at(10)}).is_null());
    CHECK(ready_in_patch(there, ShutdownState{.pending = false, .since = at(10)}).is_null());
  }
  CHECK(ready_in_patch(ready, ShutdownState{.pending = false, .since = at(10)}).is_null());
  CHECK(ready_in_patch(shutting_down, ShutdownState{.pending = true, .since = at(10)}).is_null());
  CHECK(ready_in_patch(ready, std::nullopt).is_null());
  CHECK(ready_in_patch(shutting_down, std::nullopt).is_null());
}

}  // namespace evictd::kube::node_objects_test
