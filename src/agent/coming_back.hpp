#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/event.hpp"
#include "evict/eviction_record.hpp"
#include "node/pod_cgroups.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::agent {

/// Bytes of a victim's memory that the kernel will give back by itself: what its processes hold. File cache is not
/// among it, for it stays until the kernel has need of it; and nothing is once the containers' cgroups are empty of
/// processes, whatever is still charged to them. The sandbox's own process, which lives on until the runtime ends it,
/// does not count.
///
/// Absent where it cannot be read: that is not nothing. A pod of which no cgroup is known has nothing that anybody
/// could wait for. Two preads for each cgroup that is measured, and a look at the processes' list once little is left.
[[nodiscard]] std::optional<std::int64_t> coming_back(node::PodCgroups& cgroups, const pods::RuntimePod& pod);

/// Bytes of the pod's memory that are files in a tmpfs, such as an emptyDir with the medium Memory: they outlive the
/// processes and come back once whoever mounted it unmounts it. Memory that processes share counts among them, as
/// nothing tells it from files. 0 where that cannot be read. Two preads for each cgroup that is measured.
[[nodiscard]] std::int64_t held_by_tmpfs(node::PodCgroups& cgroups, std::string_view uid);

/// Whether the fence stands in the way of pods that did nothing: a victim is killed, or held by itself, and memory of
/// it is on its way.
/// `releasing`: of all victims, as they were measured last; one that is missing there counts as holding all it held.
[[nodiscard]] bool lifts_fence(const evict::EvictionRecord& eviction, std::span<const core::Releasing> releasing);

}  // namespace evictd::agent
