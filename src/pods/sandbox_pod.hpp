#pragma once
#include <cstdint>

#include "core/pod.hpp"
#include "cri/messages.hpp"

// A pod that a client of the container runtime asks for, from the words of its request. Pure.
namespace evictd::pods {

/// What RunPodSandbox says of the pod: names, labels and annotations, the node's ports, network and IPC that it wants,
/// its sysctls, and what its containers will need together. Where it carries its spec (annotation evictd.io/pod-spec),
/// that tells containers, volumes and tolerations. `memory_capacity`: the node's, in bytes, > 0.
[[nodiscard]] core::Pod pod_of_sandbox(const ::runtime::v1::PodSandboxConfig& sandbox, std::int64_t memory_capacity);

/// The same with the container that CreateContainer adds, in the place of one of that name. A pod that carries its spec
/// has it already. Containers that came before it are not in it: the caller that knows them adds them.
[[nodiscard]] core::Pod pod_of_sandbox(const ::runtime::v1::PodSandboxConfig& sandbox,
                                       const ::runtime::v1::ContainerConfig& container, std::int64_t memory_capacity);

}  // namespace evictd::pods
