#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/pod.hpp"
#include "pods/verbose_status.hpp"

// What a pod's spec must have been, from the traces that the kubelet left in what it gave to the runtime. Pure.
namespace evictd::pods {

/// evictd's own annotations, for nodes where nothing else says how important a pod is.
inline constexpr std::string_view priority_annotation = "evictd.io/priority";
inline constexpr std::string_view priority_class_key = "evictd.io/priority-class";  ///< an annotation, or else a label
/// Set by the kubelet on every container, in seconds. (kubelet: newContainerAnnotations)
inline constexpr std::string_view termination_grace_key = "io.kubernetes.pod.terminationGracePeriod";

/// From the oom_score_adj of the pod's containers: 2 to 999 is Burstable, -997 and below Guaranteed, 1000 BestEffort; 0
/// counts as not given. (kubelet: GetContainerOOMScoreAdjust.) Second choice after the cgroup: a system-node-critical
/// pod has -997 whatever its class.
[[nodiscard]] std::optional<core::QosClass> qos_from_oom_score_adj(std::span<const LinuxResources> containers);

/// Limits are exact, and so is a cpu request. The memory request of a Guaranteed pod is its limit, that of a Burstable
/// one is exact to a thousandth of `memory_capacity` (core::request_from_oom_score_adj) and no more than the limit.
[[nodiscard]] core::Container infer_container(std::string name, const LinuxResources& resources,
                                              std::optional<core::QosClass> qos, std::int64_t memory_capacity);

/// What UpdateContainerResources makes of a container's requests and limits: what is not given, or not to be inferred
/// from it, stays. A Burstable container's memory request does: the oom_score_adj does not follow it.
void apply_update(core::Container& container, LinuxResources given, std::optional<core::QosClass> qos);

/// Sets the pod's priority and class name from its annotations and labels: the number where there is one, otherwise
/// that of system-node-critical or system-cluster-critical. A number that is none is a warning and counts as absent.
void infer_priority(core::Pod& pod, std::vector<Error>& warnings);

/// Seconds, from one container's annotations; a value that is none is a warning and counts as absent.
[[nodiscard]] std::optional<std::int64_t> infer_termination_grace(
    const std::map<std::string, std::string, std::less<>>& annotations, std::vector<Error>& warnings);

}  // namespace evictd::pods
