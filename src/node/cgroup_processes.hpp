#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "node/cgroup.hpp"
#include "os/file_error.hpp"
#include "os/kept_file.hpp"

namespace evictd::node {

// The processes of a cgroup and of all cgroups below it, however deep; as many directories are open at a time. Nothing
// stays open; cgroups that vanish on the way are passed over. `left_out` is the name of one right below it whose
// processes do not count; empty: all do.

/// Their ids in rising order, each once. Processes of other pid namespaces have none here and are left out. Error where
/// the cgroup itself is_gone(). 1.3 µs for each process (15,000 of them, 2 cores, kernel 6.18, both versions).
[[nodiscard]] os::FileResult<std::vector<pid_t>> processes(const CgroupHierarchy& hierarchy, std::string_view cgroup,
                                                           std::string_view left_out = {});

/// How much of a tree one who has no time for all of it looks at: whoever may make processes or cgroups in it can make
/// any number of them.
struct WalkLimit {
  std::size_t processes = std::numeric_limits<std::size_t>::max();
  std::size_t cgroups = std::numeric_limits<std::size_t>::max();
};

/// The same, or nothing where there are more processes or more cgroups than that. The cgroups that were looked at are
/// taken from the limit.
[[nodiscard]] os::FileResult<std::optional<std::vector<pid_t>>> processes_within(WalkLimit& limit,
                                                                                 const CgroupHierarchy& hierarchy,
                                                                                 std::string_view cgroup,
                                                                                 std::string_view left_out = {});

/// The first of those right in the cgroup, some hundreds, in rising order: no directory is listed. Of a cgroup that is
/// gone, or whose processes are listed further up (a threaded one, v2), none.
[[nodiscard]] os::FileResult<std::vector<pid_t>> first_processes(const CgroupHierarchy& hierarchy,
                                                                 std::string_view cgroup);
/// The same of a cgroup.procs that was opened before. Once for each opening: on v1 the kernel hands out the list that
/// an open file has begun with for a second and more, and makes one at the first reading. The error is_gone() where its
/// cgroup is, also when another of the same name was made since.
[[nodiscard]] os::FileResult<std::vector<pid_t>> first_processes(const os::KeptFile& unread);

/// The tasks charged to the cgroup and those below it (pids.current): processes are no more. Never lists any; an error
/// where there is no pids controller.
[[nodiscard]] os::FileResult<std::int64_t> task_count(const CgroupHierarchy& hierarchy, std::string_view cgroup);

/// The tasks charged to the cgroup (pids.current), or where there is no pids controller the number of processes.
[[nodiscard]] os::FileResult<std::int64_t> process_count(const CgroupHierarchy& hierarchy, std::string_view cgroup);

/// Whether no process is left: the end of a cleanup. 20 µs, but on v1 the kernel lists and sorts all processes of a
/// cgroup before it names the first: 20 ms for 15,000 of them. Where 64 cgroups of a tree have none the tasks charged
/// to it say whether others have; without a pids controller it is taken to have some.
[[nodiscard]] os::FileResult<bool> is_empty_or_gone(const CgroupHierarchy& hierarchy, std::string_view cgroup,
                                                    std::string_view left_out = {});

/// v2: cgroup.events, for those who wait. After a reading, poll(2) says POLLPRI on the same descriptor once the file
/// says something else (cgroup-v2.rst). Nothing on v1.
[[nodiscard]] os::FileResult<std::optional<os::KeptFile>> population_events(const CgroupHierarchy& hierarchy,
                                                                            std::string_view cgroup);
/// The same question, to this file.
[[nodiscard]] os::FileResult<bool> is_empty_or_gone(const os::KeptFile& population_events);

}  // namespace evictd::node
