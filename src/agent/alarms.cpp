#include "agent/alarms.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace evictd::agent {

bool is_by_the_clock(const wake::Wake& wake) {
  return std::ranges::all_of(wake.reasons,
                             [](const wake::Reason& reason) { return reason.source == core::WakeSource::Timer; });
}

void Alarms::report_to(DecisionLog& log) { parts_.wakes.listen(log); }

void Alarms::crossed(const wake::Wake& wake) {
  if (is_by_the_clock(wake)) parts_.fallback.count_missed();
}

void Alarms::passed(const wake::Wake& wake) {
  if (parts_.disks != nullptr) parts_.disks->passed(wake);
}

void Alarms::arm(std::span<const core::Level> levels, const node::NodeMemoryReading& reading, Outcome outcome,
                 core::Instant now) {
  arming_.levels.clear();
  for (const auto& level : levels) {
    const auto& observation = reading.observations[level.signal];
    if (!observation) continue;
    auto& armed = arming_.levels.emplace_back(level.signal, level.hard, level.available, observation->available);
    armed.time = observation->time;
    arming_.time = std::max(arming_.time, observation->time.value_or(now));
    if (const auto* counter = reading.level_input(level.signal))
      armed.usage = wake::UsageLevel{.bytes = counter->level(level.available),
                                     .without_reclaimable = counter->level_without_reclaimable(level.available),
                                     .current = counter->usage,
                                     .incarnation = counter->incarnation};
  }
  arming_.releasing = outcome.releasing;
  arming_.nobody_goes = outcome.nobody_goes;
  arm_sources();
}

void Alarms::watch_files(std::shared_ptr<const wake::WatchedPods> pods) {
  arming_.watched = std::move(pods);
  arm_sources();
}

void Alarms::arm_sources() const {
  for (const auto& source : parts_.sources) source->arm(arming_);
}

}  // namespace evictd::agent
