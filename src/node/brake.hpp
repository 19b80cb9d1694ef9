#pragma once
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "node/cgroup.hpp"
#include "node/hold_notes.hpp"

namespace evictd::node {

/// Up to where a pod may grow.
struct Brake {
  std::int64_t limit = 0;  ///< bytes
  std::int64_t usage = 0;  ///< bytes, when it was set
};

/// Keeps a pod from growing by more than `headroom` bytes. v2: memory.high of its own cgroup, beyond which allocations
/// are slowed down to next to nothing; the kubelet sets that of containers. v1: memory.limit_in_bytes, with
/// memory.oom_control = 1, so that who is beyond it waits in place of being killed. Both let SIGKILL through.
///
/// A limit that is lower already stays. On v1 the limit cannot lie below what is used: a pod that grows by more than
/// the headroom between two calls makes it fail, which is tried three times. lift_hold() undoes it; where this fails it
/// is undone already. May wait for the kernel's reclaim: not for the reactor's thread.
[[nodiscard]] Result<Brake> set_brake(const CgroupHierarchy& hierarchy, const HoldNotes& notes, const std::string& uid,
                                      const std::string& cgroup, std::int64_t headroom);

/// Lets a pod that has a brake grow up to this many bytes, or its own limit where that is lower. A brake that is not
/// evictd's any more stays, and a pod without one is no error. Does not wait.
[[nodiscard]] Result<void> widen_brake(const CgroupHierarchy& hierarchy, const HoldNotes& notes, const std::string& uid,
                                       std::int64_t limit);

}  // namespace evictd::node
