#pragma once
#include <cstdint>

#include "core/pod.hpp"

namespace evictd::core {

/// status.qosClass where it is known; otherwise from cpu and memory: of the pod as a whole where its spec has resources
/// of its own, be they none of these two, else of all containers. (kubelet 1.36: GetPodQOS; kubelet-spec section 16)
[[nodiscard]] QosClass qos_class(const Pod& pod);

/// The oom_score_adj the kubelet gives the container. `memory_capacity`: the node's, in bytes, > 0. (kubelet:
/// GetContainerOOMScoreAdjust)
[[nodiscard]] int oom_score_adj(const Pod& pod, const Container& container, std::int64_t memory_capacity);

/// The memory request that a Burstable container must have had to be given this oom_score_adj: the inverse of
/// min(max(2, 1000 - 1000·request/capacity), 999). It is exact to a thousandth of the capacity. Only for 2 to 999.
[[nodiscard]] std::int64_t request_from_oom_score_adj(int oom_score_adj, std::int64_t memory_capacity);

}  // namespace evictd::core
