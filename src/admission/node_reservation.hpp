#pragma once
#include <span>

#include "core/pod.hpp"
#include "core/threshold.hpp"

namespace evictd::admission {

/// What of the node's capacity pods are not to have: what is reserved for the kubelet and for the system, and what the
/// hard eviction thresholds of memory and of the node's file system (ephemeral-storage) keep free. Resources of which
/// nothing is kept back are not in it. (kubelet: GetNodeAllocatableReservation)
[[nodiscard]] core::ResourceList node_reservation(const core::ResourceList& capacity,
                                                  const core::ResourceList& kube_reserved,
                                                  const core::ResourceList& system_reserved,
                                                  std::span<const core::Threshold> thresholds);

}  // namespace evictd::admission
