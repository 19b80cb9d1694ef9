#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "admission/allocation/machine_topology.hpp"
#include "core/error.hpp"

namespace evictd::node {

/// The machine as the kernel describes it below SYS/devices/system/{cpu,node}: CPUs that are online with their cores,
/// packages and last-level caches, NUMA nodes with their memory, huge pages and distances. A kernel without NUMA has
/// one node with everything, its memory from PROC/meminfo.
///
/// Some firmware is vague: a CPU without a description is a core of its own in socket 0, a package number below 0
/// counts as 0, and a CPU without a cache of level 3 shares its socket's. About 6 files a CPU and 5 a node: for the
/// start, not for the loop.
[[nodiscard]] Result<admission::MachineTopology> read_machine_topology(const std::filesystem::path& sys = "/sys",
                                                                       const std::filesystem::path& proc = "/proc");

/// What is set aside for huge pages of all sizes, bytes by resource ("hugepages-2Mi"), as SYS/kernel/mm/hugepages has
/// it. A kernel without huge pages has none.
[[nodiscard]] Result<std::map<std::string, std::int64_t, std::less<>>> read_huge_pages(
    const std::filesystem::path& sys = "/sys");

}  // namespace evictd::node
