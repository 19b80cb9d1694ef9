#pragma once
#include <string>
#include <string_view>

#include "node/cgroup.hpp"
#include "os/file_error.hpp"

namespace evictd::evict {

/// Whether this is the pod's own cgroup, as a kubelet with the driver cgroupfs names it ("…/podUID"), somewhere below
/// `pods_cgroup`: whoever has no kubelet may remove it. A slice is systemd's, and its unit would outlive its directory.
[[nodiscard]] bool is_removable(std::string_view cgroup, std::string_view uid, std::string_view pods_cgroup);

/// Removes a cgroup for which is_removable() holds, with what is left below it, the innermost first. The kernel sees to
/// it that nobody is in them: it removes no cgroup that has a process or another cgroup (EBUSY). Symbolic links are not
/// followed, and no more than some thousand cgroups, 32 deep, are removed at a time, for a pod may have made any number
/// of them. True: it is gone. False: something is in it, or there is more to remove. Error: it may not be removed.
///
/// On v1 of every hierarchy that is mounted beside the memory controller's, for the runtime has made it in all of them.
/// (kubelet 1.36, pod_container_manager_linux.go: Destroy, for its own pods)
///
/// May wait for the kernel, so not on the reactor. `root` and `version`: of the hierarchy, which need not outlive this.
[[nodiscard]] os::FileResult<bool> remove_pod_cgroup(const std::string& root, node::CgroupVersion version,
                                                     const std::string& cgroup);

}  // namespace evictd::evict
