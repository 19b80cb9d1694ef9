#pragma once
#include <cstdint>
#include <optional>

#include "core/pod.hpp"

namespace evictd::core {

/// status.qosClass where it is known; otherwise from cpu and memory: of the pod as a whole where its spec has resources
/// of its own, be they none of these two, else of all containers. (kubelet 1.36: GetPodQOS; kubelet-spec section 16)
[[nodiscard]] QosClass qos_class(const Pod& pod);

/// The oom_score_adj the kubelet gives each container of a pod. What it takes of the pod as a whole is looked up once,
/// so that all containers together cost one look at each. (kubelet: GetContainerOOMScoreAdjust)
class OomScoreAdj {
 public:
  /// `memory_capacity`: the node's, in bytes, > 0.
  OomScoreAdj(const Pod& pod, std::int64_t memory_capacity);

  /// Of one of the pod's containers or init containers.
  [[nodiscard]] int of(const Container& container) const;

 private:
  std::int64_t capacity_;
  std::optional<int> of_all_{};        ///< whatever a container requests
  std::int64_t share_ = 0;             ///< bytes of the pod-level request that each container has beside its own
  std::optional<int> sidecar_most_{};  ///< nothing: there is no regular container
};

/// The same for one container alone.
[[nodiscard]] int oom_score_adj(const Pod& pod, const Container& container, std::int64_t memory_capacity);

/// The memory request that a Burstable container must have had to be given this oom_score_adj: the inverse of
/// min(max(2, 1000 - 1000·request/capacity), 999). It is exact to a thousandth of the capacity. Only for 2 to 999.
[[nodiscard]] std::int64_t request_from_oom_score_adj(int oom_score_adj, std::int64_t memory_capacity);

}  // namespace evictd::core
