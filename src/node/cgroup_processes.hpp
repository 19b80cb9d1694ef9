#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "node/cgroup.hpp"
#include "node/file_error.hpp"
#include "node/kept_file.hpp"

namespace evictd::node {

// The processes of a cgroup and of all cgroups below it. Nothing stays open; cgroups that vanish on the way are passed
// over.

/// Their ids, each once. Processes of other pid namespaces have none here and are left out. Error where the cgroup
/// itself is_gone().
[[nodiscard]] FileResult<std::vector<pid_t>> processes(const CgroupHierarchy& hierarchy, std::string_view cgroup);

/// The tasks charged to the cgroup (pids.current), or where there is no pids controller the number of processes.
[[nodiscard]] FileResult<std::int64_t> process_count(const CgroupHierarchy& hierarchy, std::string_view cgroup);

/// Whether no process is left: the end of a cleanup.
[[nodiscard]] FileResult<bool> is_empty_or_gone(const CgroupHierarchy& hierarchy, std::string_view cgroup);

/// v2: cgroup.events, for those who wait. After a reading, poll(2) says POLLPRI on the same descriptor once the file
/// says something else (cgroup-v2.rst). Nothing on v1.
[[nodiscard]] FileResult<std::optional<KeptFile>> population_events(const CgroupHierarchy& hierarchy,
                                                                    std::string_view cgroup);
/// The same question, to this file.
[[nodiscard]] FileResult<bool> is_empty_or_gone(const KeptFile& population_events);

}  // namespace evictd::node
