#include "wake/fence.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "core/signal.hpp"

namespace evictd::wake {
namespace {

/// The mark goes before memory.high when there is something to claim, and after it when there is not.
os::FileResult<void> carry_out(const os::Directory& cgroup, const FenceStep& step, std::optional<std::int64_t> high,
                               bool marked) {
  if (const auto* set = std::get_if<fence::Set>(&step)) {
    if (auto claimed = node::write_fence_mark(cgroup, {.before = high, .now = set->high}); !claimed) return claimed;
    return node::write_memory_high(cgroup, set->high);
  }
  if (std::holds_alternative<fence::Keep>(step)) return {};
  if (std::holds_alternative<fence::Lift>(step) && high)
    if (auto lifted = node::write_memory_high(cgroup, std::nullopt); !lifted) return lifted;
  return marked ? node::remove_fence_mark(cgroup) : os::FileResult<void>{};
}

}  // namespace

std::vector<Level> hard_memory_levels(std::span<const Level> levels) {
  std::vector<Level> result;
  std::ranges::copy_if(levels, std::back_inserter(result),
                       [](const Level& level) { return level.hard && core::is_memory(level.signal); });
  return result;
}

std::optional<std::int64_t> fence_distance(std::span<const Level> levels, const node::NodeMemoryReading& reading) {
  std::optional<std::int64_t> distance;
  for (const auto& level : levels) {
    const auto* input = reading.level_input(level.signal);
    if (!level.hard || input == nullptr) continue;
    const auto until_met = input->level(level.threshold) - input->usage;
    distance = std::min(distance.value_or(until_met), until_met);
  }
  return distance;
}

std::optional<std::int64_t> fence_level(std::span<const Level> levels, const node::NodeMemoryReading& reading) {
  const auto distance = fence_distance(levels, reading);
  if (!distance || !reading.pods) return std::nullopt;
  return reading.pods->usage + *distance;
}

FenceStep plan_fence(const FenceGoal& goal, std::optional<std::int64_t> high,
                     const std::optional<node::FenceMark>& mark, std::int64_t page_size) {
  const bool ours = high && mark && mark->covers(*high);
  if (high && !ours) return fence::Respect{*high};
  if (goal.lifted || !goal.level) {
    if (high || mark) return fence::Lift{};
    return fence::Keep{};
  }
  const auto lowest = (goal.usage + fence_margin + page_size - 1) / page_size * page_size;
  const auto level = *goal.level / page_size * page_size;
  const auto wanted = level >= lowest ? level : std::min(high.value_or(lowest), lowest);
  if (high && std::abs(wanted - *high) <= fence_tolerance) return fence::Keep{};
  return fence::Set{wanted};
}

std::optional<std::int64_t> FenceLook::high() const {
  if (const auto* set = std::get_if<fence::Set>(&step)) return set->high;
  return std::holds_alternative<fence::Lift>(step) ? std::nullopt : before;
}

os::FileResult<FenceLook> adjust_fence(const os::Directory& cgroup, const FenceGoal& goal) {
  static const std::int64_t page_size = ::sysconf(_SC_PAGESIZE);
  const auto high = node::read_memory_high(cgroup);
  if (!high) return std::unexpected(high.error());
  const auto mark = node::read_fence_mark(cgroup);
  if (!mark) return std::unexpected(mark.error());
  const auto step = plan_fence(goal, *high, *mark, page_size);
  if (auto done = carry_out(cgroup, step, *high, mark->has_value()); !done) return std::unexpected(done.error());
  return FenceLook{*high, step};
}

os::FileResult<bool> lift_but_mark(const os::Directory& cgroup) {
  const auto high = node::read_memory_high(cgroup);
  if (!high) return std::unexpected(high.error());
  const auto mark = node::read_fence_mark(cgroup);
  if (!mark) return std::unexpected(mark.error());
  if (!*high || !*mark || !(*mark)->covers(**high)) return false;
  if (auto lifted = node::write_memory_high(cgroup, std::nullopt); !lifted) return std::unexpected(lifted.error());
  return true;
}

}  // namespace evictd::wake
