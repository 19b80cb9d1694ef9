#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace testbed {

/// How this machine has its cgroups mounted.
struct CgroupHost {
  bool v2 = false;                                   ///< the memory controller is in the unified hierarchy
  std::filesystem::path memory{};                    ///< the root of the hierarchy that has the memory controller
  std::filesystem::path pids{};                      ///< and the pids controller; on v2 the same
  std::vector<std::filesystem::path> hierarchies{};  ///< the roots of all: with v1 a runtime has cgroups in each
};

/// Nothing when no hierarchy has the memory controller, or none has the pids controller.
[[nodiscard]] std::optional<CgroupHost> find_cgroup_host();
/// The same, read once, where their absence is a failure.
[[nodiscard]] const CgroupHost& cgroup_host();

/// The processes in this cgroup directory and in those below it. A directory that is not there has none.
[[nodiscard]] std::vector<pid_t> processes_in_cgroup(const std::filesystem::path& directory);

/// Removes the cgroup of this name from every hierarchy, with all that is below it. Processes inside are killed.
void remove_cgroups(std::string_view name);

}  // namespace testbed
