#pragma once
#include <cstddef>
#include <vector>

#include "core/pre_stop.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

/// How one container of a pod that is given time is stopped.
struct StopTurn {
  const pods::RuntimeContainer* container = nullptr;
  const core::PreStop* hook = nullptr;  ///< runs first, beside those of the others; null: there is none
  std::vector<std::size_t> after{};     ///< places in the list: these have to have ended before it is told to
};

/// The containers that have not exited, in the pod's order. A sidecar waits for the main containers and for the next
/// sidecar in the order of the spec (`pod.pod`), as far as they are there; nothing waits for an ordinary init
/// container, or for one that the spec does not have. Valid for as long as the pod.
/// (kubelet 1.36: newTerminationOrdering)
[[nodiscard]] std::vector<StopTurn> stop_order(const pods::RuntimePod& pod);

}  // namespace evictd::evict
