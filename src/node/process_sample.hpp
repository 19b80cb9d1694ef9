#pragma once
#include <sys/types.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "node/cgroup.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"

namespace evictd::node {

/// Some of the processes of a cgroup and of the cgroups below it, enough to tell what kind they are.
struct ProcessSample {
  std::vector<pid_t> pids{};  ///< the first that each cgroup lists, which on v2 are those that were put into it first
  bool complete = true;       ///< false: there may be others
};

/// At most `from_each` processes of each of the first `cgroups` cgroups, breadth first: however many there are, what is
/// read is bounded (4 KiB a cgroup). Error where the cgroup itself is_gone().
[[nodiscard]] os::FileResult<ProcessSample> sample_processes(const CgroupHierarchy& hierarchy, std::string_view cgroup,
                                                             std::size_t from_each = 8, std::size_t cgroups = 64);

/// The same of the cgroup whose directory is open, in whatever tree that is.
[[nodiscard]] ProcessSample sample_processes(os::Directory cgroup, std::size_t from_each, std::size_t cgroups);

}  // namespace evictd::node
