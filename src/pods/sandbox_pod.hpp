#pragma once
#include <cstdint>

#include "core/pod.hpp"
#include "cri/messages.hpp"
#include "pods/trust.hpp"

// A pod that a client of the container runtime asks for, from the words of its request. Pure.
namespace evictd::pods {

/// What RunPodSandbox says of the pod: names, labels and annotations, the node's ports, network and IPC that it wants,
/// its sysctls, and what its containers will need together. Where it carries its spec (annotation evictd.io/pod-spec),
/// that is believed as it is in a `trusted` namespace. Elsewhere it tells where the pod may run and what it tolerates;
/// what it claims to request counts only where the request tells neither a class nor resources to compare it with, and
/// ports, network, sysctls and confinement are the request's own. `memory_capacity`: the node's, in bytes, > 0.
[[nodiscard]] core::Pod pod_of_sandbox(const ::runtime::v1::PodSandboxConfig& sandbox, std::int64_t memory_capacity,
                                       const TrustedNamespaces& trusted);

/// The same with the container that CreateContainer adds, by what it is made with. A pod whose spec is believed has it
/// already. Containers that came before it are not in it: the caller that knows them adds them.
[[nodiscard]] core::Pod pod_of_sandbox(const ::runtime::v1::PodSandboxConfig& sandbox,
                                       const ::runtime::v1::ContainerConfig& container, std::int64_t memory_capacity,
                                       const TrustedNamespaces& trusted);

}  // namespace evictd::pods
