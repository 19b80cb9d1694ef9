#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "node/memory_high.hpp"
#include "node/node_memory.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"
#include "wake/source.hpp"

namespace evictd::wake {

// A fence: memory.high of the pods' cgroup, set so that the kernel holds processes that allocate once a hard memory
// threshold is reached. Here is what to write, and the writing; MemoryFence has one stand until evictd has acted, and
// Tripwire until it has fired.

/// Where the fence should be.
struct FenceGoal {
  std::int64_t usage = 0;               ///< of the pods' cgroup now, bytes
  std::optional<std::int64_t> level{};  ///< the usage to be held at; absent: none
  bool lifted = false;                  ///< no fence for now
};

/// Those that a fence stands for.
[[nodiscard]] std::vector<Level> hard_memory_levels(std::span<const Level> levels);

/// Bytes until the first hard memory threshold is met, if what grows until then cannot be reclaimed; below 0: one is
/// met. Absent without such a threshold.
[[nodiscard]] std::optional<std::int64_t> fence_distance(std::span<const Level> levels,
                                                         const node::NodeMemoryReading& reading);
/// The pods' usage at which that is. Absent without such a threshold, or without a pods cgroup.
[[nodiscard]] std::optional<std::int64_t> fence_level(std::span<const Level> levels,
                                                      const node::NodeMemoryReading& reading);

namespace fence {
/// What stands may stay, or there is nothing.
struct Keep {};
/// Write the mark, then memory.high.
struct Set {
  std::int64_t high;
};
/// Write "max", then remove the mark.
struct Lift {};
/// The value is someone else's: leave it, and claim nothing.
struct Respect {
  std::int64_t high;
};
}  // namespace fence
using FenceStep = std::variant<fence::Keep, fence::Set, fence::Lift, fence::Respect>;

/// How far above the usage the lowest value lies that is ever written. Below the usage the kernel would reclaim in
/// evictd itself, which holds the whole loop; this much can be allocated between reading and writing.
inline constexpr std::int64_t fence_margin = 1 << 20;
/// How far the fence may be off before it is moved: a fraction of any threshold that means something.
inline constexpr std::int64_t fence_tolerance = 1 << 20;

/// `high`, `mark`: as they stand. Where the level lies below the usage already, a fence that stands below stays, and
/// otherwise it comes to stand just above the usage.
[[nodiscard]] FenceStep plan_fence(const FenceGoal& goal, std::optional<std::int64_t> high,
                                   const std::optional<node::FenceMark>& mark, std::int64_t page_size = 4096);

/// What was found, and what was done.
struct FenceLook {
  std::optional<std::int64_t> before{};  ///< memory.high as it was
  FenceStep step;

  /// As it is now, evictd's or someone else's.
  [[nodiscard]] std::optional<std::int64_t> high() const;
};

/// Looks at the cgroup's memory.high and carries the plan out: some µs, and no waiting for reclaim.
[[nodiscard]] os::FileResult<FenceLook> adjust_fence(const os::Directory& cgroup, const FenceGoal& goal);
/// The same with no fence as the goal.
[[nodiscard]] inline os::FileResult<FenceLook> lift_fence(const os::Directory& cgroup) {
  return adjust_fence(cgroup, {.lifted = true});
}
/// Lifts a fence and leaves its mark, so that one whom this overtakes in setting it knows it as evictd's. Whether one
/// stood. Any thread.
[[nodiscard]] os::FileResult<bool> lift_but_mark(const os::Directory& cgroup);

}  // namespace evictd::wake
