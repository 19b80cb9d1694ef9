#pragma once
#include "core/pod.hpp"

namespace evictd::admission {

/// Whether the pod would take a port of the node that another one has: the same number and protocol, on the same
/// address or on all of them. Ports of containers and sidecars count, and those of which nobody says whose they are;
/// init containers have gone when it matters. (kubelet: nodeports.Fits)
[[nodiscard]] bool has_port_conflict(const core::Pod& pod, const core::PodList& others);

}  // namespace evictd::admission
