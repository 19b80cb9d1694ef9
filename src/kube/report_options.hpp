#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "core/duration.hpp"
#include "kube/retry_delay.hpp"
#include "os/log.hpp"

namespace evictd::kube {

/// What becomes of an evicted pod's API object.
enum class ReportMode : std::uint8_t {
  Status,  ///< it is Failed/Evicted, as after an eviction by the kubelet
  Delete,  ///< the same, then it is deleted: no kubelet can write another status then. The status comes first because
           ///< Jobs and disruption budgets look at it (KEP-3329: whoever deletes a pod for a disruption says so in its
           ///< status before)
  None,    ///< nothing is written about pods, no Event either: evictd needs no right but to read
};

/// How the node's pressure is told to the scheduler.
enum class NodeConditionMode : std::uint8_t {
  Conditions,  ///< conditions and taints: no kubelet on the node writes them
  Taints,      ///< taints alone: a kubelet owns the conditions
  None,
};

/// One line for the operator.
using Tell = std::function<void(os::LogLevel level, const std::string& line)>;

struct ReportOptions {
  std::string node{};  ///< the Node object's name
  ReportMode report = ReportMode::Status;
  NodeConditionMode node_conditions = NodeConditionMode::None;
  /// Reports that wait, at most. A node has some 110 pods, and gets no new ones while its API server is away.
  std::size_t capacity = 1000;
  /// Evicted pods remembered, so that a status of theirs which is overwritten can be written again: about 1 KiB each.
  std::size_t remembered = 1024;
  /// How often conditions are confirmed, on average (kubelet: nodeStatusReportFrequency). Each time it is a random time
  /// from half of it to one and a half, as newer kubelets do after a change: nodes that started, or came under
  /// pressure, together do not go on together.
  core::Duration heartbeat = std::chrono::minutes{5};
  /// How long the node's first report waits: a share of kubernetes.startSpread. Evictions never wait for it.
  core::Duration start_delay{};
  /// What evictd has no right to is asked for again at the latest after this: a role has to be changed first.
  core::Duration forbidden_retry = std::chrono::minutes{5};
  /// One success is enough to begin anew: what answers is there.
  RetryLimits retry{.longest = std::chrono::minutes{1}, .lasting = {}};

  /// How long to wait after so many refusals before this one. It begins with seconds: an API server that has just
  /// started has not read its roles yet and forbids everything.
  [[nodiscard]] core::Duration forbidden_pause(int refusals) const {
    constexpr std::chrono::seconds first{5};
    return std::min<core::Duration>(first * (1 << std::min(refusals, 6)), forbidden_retry);
  }
};

/// How long a report that the server fails at (500, 503) lets others go first: 1 s, doubled each time, at most 1 min.
[[nodiscard]] constexpr core::Duration stand_back(int failures) {
  return std::min<core::Duration>(std::chrono::seconds{1} * (1 << std::min(failures, 6)), std::chrono::minutes{1});
}

}  // namespace evictd::kube
