#pragma once
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace evictd::node {

/// The path below the hierarchy's root of the cgroup that CRI names as a sandbox's `cgroup_parent`.
///
/// With the cgroupfs driver it is that path itself: "/kubepods/burstable/pod<uid>". With the systemd driver it is the
/// name of a slice, whose dashes are levels: "kubepods-burstable-pod<uid>.slice" lies at
/// "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice" (systemd.slice(5)). A name that leads
/// out of the hierarchy is an error.
[[nodiscard]] Result<std::string> cgroup_path(std::string_view cgroup_parent);

}  // namespace evictd::node
