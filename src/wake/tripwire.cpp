#include "wake/tripwire.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "os/now.hpp"
#include "wake/fence.hpp"

namespace evictd::wake {
namespace {

/// What moves faster than it is looked at is seen by the passes, which come at least as often
/// (notifier.fallbackInterval unless that was changed).
constexpr core::Duration slowest_look = std::chrono::seconds(10);

/// When memory was read for these levels.
core::Instant read_at(const std::vector<Level>& levels, core::Instant arming) {
  if (levels.empty()) return arming;
  auto time = core::Instant::min();
  for (const auto& level : levels) time = std::max(time, level.time.value_or(arming));
  return time;
}

bool is_within_margin(const Level& level) { return level.threshold <= tripwire_margin(); }

}  // namespace

std::int64_t tripwire_margin() {
  static const std::int64_t batch = std::int64_t{64} * ::sysconf(_SC_PAGESIZE);
  static const auto result = fence_tolerance + batch * std::max(1U, std::thread::hardware_concurrency());
  return result;
}

Tripwire::Tripwire(const boost::asio::any_io_executor& reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
                   node::NodeMemory& memory, const Options& options)
    : memory_{memory},
      high_{reactor, wakes, hierarchy,
            PodsHigh::Options{.source = core::WakeSource::Tripwire,
                              .cgroup = memory.pods_cgroup(),
                              .note = options.note,
                              .among_pods = options.among_pods},
            *this},
      rule_{options.rule},
      fastest_look_{options.fastest_look} {
  high_.look_again_at(os::now() + pause_);
}

void Tripwire::arm(const Arming& arming) {
  levels_ = hard_memory_levels(arming.levels);
  TripwireRule::Seen seen{
      .read = read_at(levels_, arming.time), .releasing = arming.releasing, .nobody_goes = arming.nobody_goes};
  for (const auto& level : levels_) {
    const auto distance = level.available - level.threshold;
    seen.distance = std::min(seen.distance.value_or(distance), distance);
  }
  rule_.passed(seen, os::now());
  const auto before = high_.high();
  const auto decision = follow();
  if (decision.until) return high_.look_again_at(*decision.until);
  if (before == high_.high()) return;
  pause_ = fastest_look_;
  high_.look_again_at(os::now() + pause_);
}

/// Short of a reason it looks less and less often.
void Tripwire::look_again() {
  const auto before = high_.high();
  const auto decision = follow();
  pause_ = before == high_.high() ? std::min(2 * pause_, slowest_look) : fastest_look_;
  high_.look_again_at(decision.until.value_or(os::now() + pause_));
}

TripwireRule::Decision Tripwire::follow() {
  using enum TripwireRule::Wish;
  const auto now = os::now();
  auto decision = rule_.decide(now);
  FenceGoal goal{.lifted = true};
  if (!decision) {
    const auto reading = memory_.read(now);
    if (!reading || !reading->pods) {
      // Not knowing where the pods stand, it stays where it is; who reads the node tells why.
      high_.adjust(std::nullopt, {});
      return {.wish = Keep};
    }
    decision = rule_.by_distance(fence_distance(levels_, *reading), high_.high().has_value(), now);
    goal.usage = reading->pods->usage;
    goal.level = fence_level(levels_, *reading);
    if (goal.level) *goal.level += tripwire_margin();
  }
  // On hundreds of processors: it would stand where nobody gets.
  if (decision->wish == Stand && std::ranges::any_of(levels_, is_within_margin))
    decision = {.wish = Lift, .why = "waiting: a threshold is lower than what the kernel's counters may be off"};
  goal.lifted = decision->wish == Lift;
  high_.adjust(decision->wish == Keep ? std::nullopt : std::optional(goal), decision->why);
  if (decision->news) high_.wake("memory is short");
  return *decision;
}

void Tripwire::high_exceeded() {
  const auto now = os::now();
  if (rule_.tripped(now)) high_.wake();
  if (const auto decision = rule_.decide(now); decision && decision->until) high_.look_again_at(*decision->until);
}

std::vector<SourceStatus> Tripwire::status() const {
  auto status = high_.status();
  status.detail = fmt::format("tripped {}x, {}x for nothing", rule_.trips(), rule_.spurious());
  status.spurious = rule_.spurious();
  return {status};
}

}  // namespace evictd::wake
