#pragma once
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/kept_file.hpp"

namespace evictd::evict {

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

/// Which processes no eviction may hit, wherever they are: evictd, the runtime, its shims, a kubelet. From any thread.
using IsProtected = std::function<bool(pid_t)>;

/// Removes the protected ones; the order stays.
///
/// To ask for each costs 6 µs, too much for ten thousands of them. A process inherits its session or makes a new one,
/// and a runtime gives each container a session of its own, so a process of the node is never in one session with those
/// of a pod. So where there are many processes, some of each session are asked for, and the rest of it only where one
/// of those is protected: 1 µs for each process.
void remove_protected(std::vector<pid_t>& processes, const IsProtected& is_protected);

/// A process that was found not to be protected, so that asking again costs one pread in place of four calls. Its file
/// is open for that: the kernel ties it to the process, so whoever gets the pid later is not taken for it.
class Unprotected {
 public:
  /// Nothing where the process is protected, or has ended.
  [[nodiscard]] static std::optional<Unprotected> look(pid_t pid, const IsProtected& is_protected,
                                                       const std::string& proc = "/proc");

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Whether the process still has the pid, and no name that may be protected. So a pidfd that was opened before this
  /// holds that process.
  [[nodiscard]] bool is_still() const;

 private:
  Unprotected(pid_t pid, os::KeptFile comm) : pid_{pid}, comm_{std::move(comm)} {}

  pid_t pid_;
  os::KeptFile comm_;
};

}  // namespace evictd::evict
