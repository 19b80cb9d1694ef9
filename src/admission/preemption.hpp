#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::admission {

/// What has to be freed: more than 0, of CPU in thousandths; of "pods" every pod gives one.
struct Requirement {
  std::string resource;
  std::int64_t quantity = 0;

  friend bool operator==(const Requirement&, const Requirement&) = default;
};

using Requirements = std::vector<Requirement>;

/// Whether a pod may have to go for another one: for a critical pod, if it is not critical itself; otherwise if both
/// say their priority and its own is lower. (kubelet: Preemptable)
[[nodiscard]] bool may_preempt(const core::Pod& preemptor, const core::Pod& pod);

/// Who goes so that at least as much is requested less: as few as possible of the Guaranteed pods, then of the
/// Burstable, then of the BestEffort ones. Within a class it is always the pod that comes closest to what is still
/// missing, among equals the one that asks for less. The result has them the other way round, BestEffort first; the
/// rule is kubelet-spec section 13. Error: all together would not be enough, in the kubelet's words.
[[nodiscard]] Result<core::PodList> pods_to_preempt(const core::Pod& preemptor, const core::PodList& active,
                                                    const Requirements& requirements);

}  // namespace evictd::admission
