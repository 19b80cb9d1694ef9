#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::core {

/// Pods that end together when the node shuts down.
struct ShutdownGroup {
  std::int32_t priority = 0;  ///< the least of its pods; those below the lowest group join it all the same
  Duration grace_period{};    ///< what they are given, in whole seconds; the next group waits no longer for them

  friend bool operator==(const ShutdownGroup&, const ShutdownGroup&) = default;
};

/// By rising priority. Empty: graceful shutdown is off.
using ShutdownGroups = std::vector<ShutdownGroup>;

/// As a KubeletConfiguration has it: shutdownGracePeriod, shutdownGracePeriodCriticalPods,
/// shutdownGracePeriodByPodPriority.
struct ShutdownSettings {
  Duration grace_period{};
  Duration critical_pods{};  ///< of `grace_period`, for those of critical priority
  std::vector<ShutdownGroup> by_priority{};
};

/// Either groups by priority or the pair. That is two groups: priority 0 with what the critical pods leave, and
/// 2,000,000,000; fractions of a second are cut off. A pair of zeros is no group; groups by priority are groups even
/// where all their periods are 0: their pods are killed and no pod is admitted. (kubelet 1.36: nodeshutdown.NewManager,
/// migrateConfig)
///
/// Error, as the kubelet has it: a period of the pair that is negative or below 1 s but not 0, more for critical pods
/// than for all, groups by priority beside a pair; beyond the kubelet's: a negative period of a group, or more than
/// 10^9 s, be it of one or of all together. It begins with the key that is at fault. (kubelet:
/// ValidateKubeletConfiguration)
[[nodiscard]] Result<ShutdownGroups> make_shutdown_groups(const ShutdownSettings& settings);

/// All groups' periods together: what a shutdown takes at most, and has to be delayed for.
[[nodiscard]] Duration total_grace_period(const ShutdownGroups& groups);

/// The group that a pod of this priority is in: the highest whose priority is no higher, else the lowest. The priority
/// alone decides: a static pod of priority 0 goes with the first. `groups` must not be empty.
/// (kubelet: groupByPriority)
[[nodiscard]] std::size_t shutdown_group_of(const ShutdownGroups& groups, std::int32_t priority);

/// The smaller of the group's, which may be none, and the pod's own, which is 30 s where its spec says nothing and 1 s
/// where it says less.
[[nodiscard]] Duration shutdown_grace_period(const ShutdownGroup& group, const Pod& pod);

/// A group and who is in it, in the order of the list.
struct ShutdownStage {
  std::size_t group = 0;  ///< its index
  PodList pods;
};

/// By rising priority, without empty groups. Every pod is in exactly one. None where `groups` is empty.
[[nodiscard]] std::vector<ShutdownStage> plan_shutdown(const ShutdownGroups& groups, const PodList& pods);

}  // namespace evictd::core
