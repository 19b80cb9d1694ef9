#pragma once
#include <cstddef>
#include <string_view>

#include "core/error.hpp"
#include "node/pod_cgroups.hpp"

namespace evictd::evict {

/// Sends SIGKILL to every process of the pod's cgroup tree and to nobody else: each process is held by a pidfd, and
/// signalled only if the cgroup still lists it once it is held, so a reused pid cannot hit a stranger (pidfd_open(2),
/// Linux 5.3). Repeats while forks bring new ones. Returns how many it found at first; an empty or vanished cgroup is
/// none.
[[nodiscard]] Result<std::size_t> kill_pod(const node::PodCgroups& cgroups, std::string_view uid);

}  // namespace evictd::evict
