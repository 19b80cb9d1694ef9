#pragma once
#include <sys/types.h>

#include <functional>
#include <vector>

namespace evictd::evict {

/// Which processes no eviction may hit, wherever they are: evictd, the runtime, its shims, a kubelet. From any thread.
using IsProtected = std::function<bool(pid_t)>;

/// Removes the protected ones; the order stays.
///
/// To ask for each costs 6 µs, too much for ten thousands of them. A process inherits its session or makes a new one,
/// and a runtime gives each container a session of its own, so a process of the node is never in one session with those
/// of a pod. So where there are many processes, some of each session are asked for, and the rest of it only where one
/// of those is protected: 1 µs for each process.
void remove_protected(std::vector<pid_t>& processes, const IsProtected& is_protected);

}  // namespace evictd::evict
