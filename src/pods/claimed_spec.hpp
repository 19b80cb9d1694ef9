#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/pod.hpp"
#include "pods/verbose_status.hpp"

// What of an annotated spec can be true, by the numbers that the containers were created with. Whoever creates
// containers, such as the kubelet, gives these numbers to the runtime for the kernel; the annotation is the text of
// whoever made the pod. Pure.
namespace evictd::pods {

/// A container as the runtime has it; of several with one name, the latest.
struct CreatedContainer {
  std::string name;
  std::optional<LinuxResources> resources{};  ///< nothing: unknown
  bool exited = false;                        ///< and another container of the pod has not
  bool is_silent = false;                     ///< what is not known of it never will be, for it is made so
};

/// The grace period in seconds that a pod which is not trusted can claim, where the runtime names none: Kubernetes'
/// default.
inline constexpr std::int64_t longest_claimed_grace = 30;

/// Takes back what the annotated spec of a pod claims and its QoS class (`status_qos`, by the cgroup or the
/// oom_score_adj) and its containers' numbers do not allow:
///
/// - a BestEffort pod requests nothing;
/// - a Burstable container requests no more memory than its oom_score_adj says, which is exact to a thousandth of
///   `memory_capacity`, and no more cpu than its cpu shares say; a Guaranteed one requests its limits;
/// - a container that the runtime does not have, or has no more, requests nothing;
/// - requests of other resources, pod-level resources and overhead do not count: no number vouches for them.
///
/// A claim that cannot be true is replaced by what the numbers say. The first few are added to `warnings` each, the
/// others by their number. A lower claim stands, as do limits: both only ever work against the pod. A container whose
/// numbers are not known keeps its claim, unless it keeps them from being known itself; and where the QoS class is not
/// known, and no container does that, nothing is taken back.
void hold_to_numbers(core::Pod& pod, std::span<const CreatedContainer> created, std::int64_t memory_capacity,
                     std::vector<Error>& warnings);

/// The ports of the node that the pod takes are those that its sandbox maps, whatever it claims.
void take_mapped_ports(core::Pod& pod, std::vector<core::HostPort> mapped);

/// The grace period of a pod that is not trusted. `told`: by the runtime, which has it from the kubelet.
[[nodiscard]] std::optional<std::int64_t> believed_grace(std::optional<std::int64_t> claimed,
                                                         std::optional<std::int64_t> told);

}  // namespace evictd::pods
