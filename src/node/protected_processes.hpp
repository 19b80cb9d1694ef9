#pragma once
#include <sys/types.h>

#include <string>

namespace evictd::node {

/// Whether evictd must never signal the process, wherever it was found: itself, and what the node cannot do without
/// (containerd, its shims, a kubelet), in case one was moved into a pod's cgroup. `proc`: where proc is mounted.
///
/// Such a program is known by its name (/proc/PID/comm) and by being of the node: a process in a pid namespace of its
/// own, below the one `proc` shows, is a pod's, whatever it calls itself. So no container hides behind a name, and a
/// containerd that runs inside a pod goes with it. A pod that shares the node's pid namespace (hostPID) and takes such
/// a name is left to the runtime. A process that has ended is not protected; one that cannot be looked at, for
/// want of a descriptor say, is. 5 µs, and 20 µs more for one with such a
/// name.
[[nodiscard]] bool is_protected(pid_t pid, const std::string& proc = "/proc");

}  // namespace evictd::node
