#pragma once
#include <string>
#include <string_view>

namespace evictd::pods {

/// The uid of the pod that a process runs in, from its /proc/PID/cgroup; empty: in none, or the file does not show it
/// (in a cgroup namespace of its own a container sees "/").
[[nodiscard]] std::string pod_of_process(std::string_view cgroup_file);

/// The uid of the pod that evictd runs in: $POD_UID, which a DaemonSet can set (downward API, metadata.uid), else by
/// its own cgroup; empty: in none.
[[nodiscard]] std::string own_pod_uid();

}  // namespace evictd::pods
