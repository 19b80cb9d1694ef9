#pragma once
#include <string_view>

#include "core/duration.hpp"
#include "node/cgroup.hpp"
#include "os/file_error.hpp"

namespace evictd::node {

/// What the cgroup and those below it have used of the processors so far: usage_usec of cpu.stat (v2, which has it
/// without the controller as well), or cpuacct.usage in the hierarchy of its own that v1 has for it. The error
/// is_gone() where there is no such cgroup, or on v1 no such hierarchy. One file is opened and closed: 10 µs.
[[nodiscard]] os::FileResult<core::Duration> processor_time(const CgroupHierarchy& hierarchy, std::string_view cgroup);

}  // namespace evictd::node
