#pragma once
#include "admission/allocation/cpu_accumulator.hpp"
#include "admission/allocation/machine_topology.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"

namespace evictd::admission {

/// Picks `count` of the free CPUs so that they lie as close together as can be: whole NUMA nodes and sockets, whole
/// cores, then threads. Too few are an error in the kubelet's words. (kubelet: takeByTopologyNUMAPacked)
[[nodiscard]] Result<CpuSet> take_packed(const MachineTopology& machine, const CpuSet& free, int count,
                                         const CpuPreferences& preferences = {});

/// Picks them in equal parts from as few NUMA nodes as can give equal parts, always `group_size` (1 or the threads of a
/// core) at a time; the odd ones from where the machine stays most balanced. Packed where nothing can be divided.
/// (kubelet: takeByTopologyNUMADistributed, KEP-2902)
[[nodiscard]] Result<CpuSet> take_distributed(const MachineTopology& machine, const CpuSet& free, int count,
                                              int group_size, const CpuPreferences& preferences = {});

}  // namespace evictd::admission
