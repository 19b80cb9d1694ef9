#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "admission/device_edits.hpp"
#include "core/duration.hpp"

namespace evictd::admission {

/// Logical CPUs by the kernel's numbers.
using CpuSet = std::set<int>;
/// NUMA nodes by the kernel's numbers.
using NumaNodes = std::set<int>;

/// Memory that a container has for itself on a group of NUMA nodes.
struct MemoryBlock {
  NumaNodes numa_nodes;
  std::string type;  ///< "memory", or a resource such as "hugepages-2Mi"
  std::int64_t bytes = 0;

  friend bool operator==(const MemoryBlock&, const MemoryBlock&) = default;
};

/// What one container has for itself alone. A container without exclusive CPUs shares those that are left.
struct ContainerAllocation {
  CpuSet cpus{};
  std::vector<MemoryBlock> memory{};
  std::map<std::string, std::set<std::string>, std::less<>> devices{};  ///< resource -> ids
  /// What the plugins of its devices want it to be given. Absent: they were not asked yet, or it has none of theirs.
  std::optional<DeviceEdits> edits{};

  [[nodiscard]] bool empty() const { return cpus.empty() && memory.empty() && devices.empty(); }
  friend bool operator==(const ContainerAllocation&, const ContainerAllocation&) = default;
};

/// What a pod's containers have, by their names; those that have nothing for themselves are not in it.
using PodAllocation = std::map<std::string, ContainerAllocation, std::less<>>;

/// What the pods of the node have, by their uids.
using Allocations = std::map<std::string, PodAllocation, std::less<>>;

/// Until when something is kept for pods that no list has named yet, by their uids.
using Coming = std::map<std::string, core::Instant, std::less<>>;

}  // namespace evictd::admission
