#include "wake/fence.hpp"

#include <doctest/doctest.h>

#include <array>
#include <random>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::wake::fence_test {
namespace {

using core::Signal;
using fixture::file;
using fixture::Tree;
using fixture::value_of;
using node::FenceMark;

constexpr std::int64_t MiB = std::int64_t{1} << 20;
constexpr std::int64_t GiB = std::int64_t{1} << 30;

std::string said(const FenceStep& step) {
  if (const auto* set = std::get_if<fence::Set>(&step)) return "set " + std::to_string(set->high / MiB) + " MiB";
  if (const auto* foreign = std::get_if<fence::Respect>(&step)) return "respect " + std::to_string(foreign->high / MiB);
  return std::holds_alternative<fence::Lift>(step) ? "lift" : "keep";
}

/// All in MiB; -1: none.
std::string plan(std::int64_t usage, std::int64_t level, std::int64_t high = -1, bool ours = true) {
  const auto optional = [](std::int64_t value) { return value < 0 ? std::nullopt : std::optional(value * MiB); };
  const auto mark = high >= 0 && ours ? std::optional(FenceMark{.now = high * MiB}) : std::nullopt;
  return said(plan_fence({.usage = usage * MiB, .level = optional(level)}, optional(high), mark));
}

/// A cgroup's directory as far as the fence is concerned.
struct Cgroup {
  Tree tree{{file("memory.high", "max\n")}};
  os::Directory directory = value_of(os::Directory::open(tree.path()));

  FenceLook look(std::int64_t usage, std::int64_t level) const {
    return value_of(adjust_fence(directory, {.usage = usage * MiB, .level = level * MiB}));
  }
  std::optional<std::int64_t> high() const { return value_of(node::read_memory_high(directory)); }
  std::optional<FenceMark> mark() const { return value_of(node::read_fence_mark(directory)); }
};

}  // namespace

TEST_CASE("the fence stands where the pods meet the first hard memory threshold") {
  node::NodeMemoryReading reading;
  reading.node_level = {.capacity = 4 * GiB, .usage = 3 * GiB, .reclaimable = 512 * MiB};
  reading.pods = node::MemoryReading{.usage = 2 * GiB};
  const Level hard{.signal = Signal::MemoryAvailable, .hard = true, .threshold = 500 * MiB};
  const Level early{.signal = Signal::MemoryAvailable, .hard = false, .threshold = 1 * GiB};
  const Level pods{.signal = Signal::AllocatableMemoryAvailable, .hard = true, .threshold = 100 * MiB};
  const Level disk{.signal = Signal::NodefsAvailable, .hard = true, .threshold = 100 * GiB};
  const auto level = [&](std::vector<Level> levels) { return fence_level(levels, reading); };

  CHECK_FALSE(level({}).has_value());
  CHECK_FALSE(level({early, disk}).has_value());
  CHECK(level({early, hard, disk}) == 2 * GiB + (1536 - 500) * MiB);
  CHECK(level({hard, pods}) == 2 * GiB + (1536 - 500) * MiB);  // the pods have no limit
  reading.pods_level = node::MemoryLevelInput{.capacity = 2 * GiB + 200 * MiB, .usage = 2 * GiB, .reclaimable = 0};
  CHECK(level({hard, pods}) == 2 * GiB + 100 * MiB);
  reading.node_level.usage = 4 * GiB;  // met already
  CHECK(level({hard, pods}) == 2 * GiB + 12 * MiB);
  reading.node_level.reclaimable = 0;
  CHECK(level({hard, pods}) == 2 * GiB - 500 * MiB);
  reading.pods.reset();
  CHECK_FALSE(level({hard, pods}).has_value());
}

TEST_CASE("it is set at the level, and follows it when it moved by more than a little") {
  CHECK(plan(100, 300) == "set 300 MiB");
  CHECK(plan(100, 300, 300) == "keep");
  CHECK(plan(100, 301, 300) == "keep");
  CHECK(plan(100, 302, 300) == "set 302 MiB");
  CHECK(plan(100, 298, 300) == "set 298 MiB");
  CHECK(plan(100, 101) == "set 101 MiB");
}

TEST_CASE("where the level lies below the usage, it stands just above the usage and does not rise with it") {
  CHECK(plan(100, 50) == "set 101 MiB");
  CHECK(plan(100, -1) == "keep");
  CHECK(plan(100, 50, 200) == "set 101 MiB");
  CHECK(plan(100, 50, 99) == "keep");
  CHECK(plan(100, 50, 40) == "keep");
  CHECK(plan(100, 120, 40) == "set 120 MiB");
}

TEST_CASE("it is lifted when there is nothing to hold at, and while memory is coming back") {
  CHECK(plan(100, -1, 300) == "lift");
  const FenceMark mark{.now = 300 * MiB};
  CHECK(said(plan_fence({.usage = 1, .level = 300 * MiB, .lifted = true}, 300 * MiB, mark)) == "lift");
  CHECK(said(plan_fence({.usage = 1, .level = 300 * MiB, .lifted = true}, std::nullopt, mark)) == "lift");
  CHECK(said(plan_fence({.usage = 1, .level = 300 * MiB, .lifted = true}, std::nullopt, std::nullopt)) == "keep");
}

TEST_CASE("a value is evictd's when the mark names it, as the new one or as the one before; else it is respected") {
  const FenceMark mark{.before = 200 * MiB, .now = 300 * MiB};
  const FenceGoal lifted{.lifted = true};
  CHECK(said(plan_fence(lifted, 300 * MiB, mark)) == "lift");
  CHECK(said(plan_fence(lifted, 200 * MiB, mark)) == "lift");
  CHECK(said(plan_fence(lifted, 250 * MiB, mark)) == "respect 250");
  CHECK(plan(100, 300, 250, false) == "respect 250");
  CHECK(plan(100, -1, 250, false) == "respect 250");
}

TEST_CASE("nothing is ever written that lies below the usage and a margin, and all that is written is whole pages") {
  std::mt19937_64 random{1};
  const auto amount = [&] { return static_cast<std::int64_t>(random() % (64 * MiB)); };
  int written = 0;
  for (int i = 0; i < 100'000; ++i) {
    const FenceGoal goal{.usage = amount(), .level = amount() - 16 * MiB, .lifted = random() % 8 == 0};
    const auto high = random() % 3 == 0 ? std::nullopt : std::optional(amount());
    const auto mark = high ? std::optional(FenceMark{.now = *high}) : std::nullopt;
    const std::int64_t page_size = random() % 2 == 0 ? 4096 : 65536;
    const auto step = plan_fence(goal, high, mark, page_size);
    const auto* set = std::get_if<fence::Set>(&step);
    if (set == nullptr) continue;
    ++written;
    REQUIRE_FALSE(goal.lifted);
    REQUIRE(set->high >= goal.usage + fence_margin);
    REQUIRE(set->high % page_size == 0);
    REQUIRE(set->high <= std::max(*goal.level, goal.usage + fence_margin + page_size));
  }
  CHECK(written > 10'000);
}

TEST_CASE("the files follow: mark and value are written, moved, and both gone when it is lifted") {
  const Cgroup cgroup;
  CHECK(cgroup.look(100, 300).high() == 300 * MiB);
  CHECK(cgroup.high() == 300 * MiB);
  CHECK(cgroup.mark() == FenceMark{.now = 300 * MiB});

  CHECK(cgroup.look(100, 400).high() == 400 * MiB);
  CHECK(cgroup.high() == 400 * MiB);
  CHECK(cgroup.mark() == FenceMark{.before = 300 * MiB, .now = 400 * MiB});

  const auto lifted = value_of(lift_fence(cgroup.directory));
  CHECK(lifted.before == 400 * MiB);
  CHECK_FALSE(lifted.high().has_value());
  CHECK_FALSE(cgroup.high().has_value());
  CHECK_FALSE(cgroup.mark().has_value());
  CHECK(said(value_of(lift_fence(cgroup.directory)).step) == "keep");
}

TEST_CASE("killed between the mark and the value, evictd knows what stands as its own") {
  const Cgroup first;
  CHECK(node::write_fence_mark(first.directory, {.now = 300 * MiB}).has_value());
  CHECK(said(value_of(lift_fence(first.directory)).step) == "lift");
  CHECK_FALSE(first.mark().has_value());

  const Cgroup moved;
  moved.look(100, 300);
  CHECK(node::write_fence_mark(moved.directory, {.before = 300 * MiB, .now = 400 * MiB}).has_value());
  CHECK(said(value_of(lift_fence(moved.directory)).step) == "lift");
  CHECK_FALSE(moved.high().has_value());
}

TEST_CASE("someone else's value stays, the mark goes, and once it is max again the fence comes back") {
  const Cgroup cgroup;
  cgroup.look(100, 300);
  cgroup.tree.write("memory.high", "123457536\n");
  CHECK(said(cgroup.look(100, 300).step) == "respect 117");
  CHECK(cgroup.high() == 123457536);
  CHECK_FALSE(cgroup.mark().has_value());
  CHECK(said(value_of(lift_fence(cgroup.directory)).step) == "respect 117");
  cgroup.tree.write("memory.high", "max\n");
  CHECK(said(cgroup.look(100, 300).step) == "set 300 MiB");
}

}  // namespace evictd::wake::fence_test
