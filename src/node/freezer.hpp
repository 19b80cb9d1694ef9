#pragma once
#include <string>

#include "core/error.hpp"
#include "node/cgroup.hpp"
#include "node/hold_notes.hpp"

namespace evictd::node {

/// Stops all processes of a pod where they are (v2: cgroup.freeze; v1: freezer.state), and waits for that for up to
/// 20 ms: one that the kernel holds up stops later. A pod that is frozen already is someone else's affair, and an
/// error. lift_hold() thaws it; where this fails that is done already.
///
/// SIGKILL ends frozen processes on v2; on v1 they see it once they are thawed. Not for the reactor's thread.
[[nodiscard]] Result<void> freeze(const CgroupHierarchy& hierarchy, const HoldNotes& notes, const std::string& uid,
                                  const std::string& cgroup);

}  // namespace evictd::node
