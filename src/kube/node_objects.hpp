#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/pressure.hpp"
#include "core/signal.hpp"
#include "kube/wall_time.hpp"

namespace evictd::kube {

/// The condition Ready, as whoever answers for the node wrote it.
struct ReadyCondition {
  std::string status;
  std::string reason;
  std::string message;
};

/// What of a node, as the API server has it, matters for reports.
struct NodeView {
  std::string resource_version;
  std::map<core::NodeCondition, std::string> conditions{};  ///< "True", "False", "Unknown"; absent: none of that type
  std::string taints = "[]";                                ///< spec.taints, JSON
  std::optional<ReadyCondition> ready{};
};
[[nodiscard]] Result<NodeView> parse_node(std::string_view body);

/// "/api/v1/nodes/NAME"
[[nodiscard]] std::string node_target(std::string_view node);

/// Whether the node shuts down, and since when that is so.
struct ShutdownState {
  bool pending = false;
  WallTime since;
};

/// A strategic merge patch of nodes/NAME/status with the three pressure conditions, in the kubelet's words
/// (kubelet nodestatus/setters.go). A condition that says the same as `view` keeps its lastTransitionTime; else that is
/// `since`, or `now` where `since` does not tell. lastHeartbeatTime is `now`.
///
/// Ready belongs to somebody else. It is part of the patch only where the node shuts down and it is True, which makes
/// it False with the kubelet's words, and where it has these words and the node does not shut down, which makes it True
/// again: the API server itself remembers over restarts, and over the boot, what is to be put back. The patch carries
/// the resourceVersion of `view` then: the API server answers 409 if the owner wrote since. Absent `shutdown`: it is
/// not known, and Ready is left alone.
[[nodiscard]] std::string conditions_patch(const NodeView& view, const core::NodeConditions& conditions,
                                           const std::map<core::NodeCondition, WallTime>& since, WallTime now,
                                           const std::optional<ShutdownState>& shutdown = {});

/// "node.kubernetes.io/memory-pressure", …
[[nodiscard]] std::string_view taint_key(core::NodeCondition condition);

/// A merge patch of the node that adds the NoSchedule taints of `conditions` and removes those of all others; absent if
/// there is nothing to do.
///
/// spec.taints is one atomic list in patches (it has no patchMergeKey), so the patch carries the whole list, others'
/// taints untouched, and the resourceVersion it was read with: the API server answers 409 if the node changed since. A
/// taint stays where the node's own condition is True: there it belongs to the node lifecycle controller, which derives
/// these taints from the conditions and would add it again.
[[nodiscard]] std::optional<std::string> taints_patch(const NodeView& view, const core::NodeConditions& conditions);

}  // namespace evictd::kube
