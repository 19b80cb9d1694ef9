#pragma once
#include <optional>
#include <string>

#include "core/error.hpp"

namespace evictd::host {

/// Keeps evictd able to act when the node has no memory left. Called once at the start, on the reactor's thread and
/// before there are others than the log's. Returns a line on what the host refused, saying what to do; evictd
/// runs on without it. What a unit sets as well is left to it: oom_score_adj, the scheduler, the limits.
///
/// Open files: the soft limit is raised to the hard one, for pods' cgroup files stay open.
///
/// It also has few heaps for all threads instead of one each, of which every one keeps pages for itself; and it takes
/// 1 MiB of heap and 256 KiB of stack beforehand, for an eviction in which nothing more is to be had.
[[nodiscard]] std::optional<std::string> protect_self();

/// Keeps evictd's memory resident (mlockall): its own code as a whole, and every other page once it is touched.
/// Called once when all parts are made. What only making them took is given up first: of libraries and of the program
/// that is more than half. Never without MCL_ONFAULT, which would touch the stacks of gRPC's threads as well: 83 MiB
/// instead of 12. Not under a limit (RLIMIT_MEMLOCK without CAP_IPC_LOCK): allocations would fail on reaching it.
[[nodiscard]] Result<void> lock_memory();

}  // namespace evictd::host
