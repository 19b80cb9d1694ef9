#include "core/pass_context.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/threshold.hpp"

namespace evictd::core {

void PassContext::begin_first_minute(Instant now) {
  if (evictions_in_first_minute > 0) rate_limit.cap(std::exchange(evictions_in_first_minute, 0), now);
}

void PassContext::derive_containerfs() {
  if (containerfs_derived) return;
  policy.thresholds = with_derived_containerfs(std::move(policy.thresholds), layout);
  containerfs_derived = true;
}

EvictionOrder PassContext::order() const {
  return EvictionOrder{{.in_flight = in_flight, .back_off = back_off, .unlisted = unlisted, .layout = layout}};
}

std::optional<WakeAt> PassContext::wake_for_change(Instant now) {
  auto time = pressure.next_change(policy.pressure_transition_period, now);
  if (limited_until) time = std::min(time.value_or(*limited_until), *limited_until);
  if (wake_at == time) return std::nullopt;
  wake_at = time;
  return WakeAt{time};
}

std::optional<WakeAt> PassContext::wake_for_new_pods(Instant now) {
  if (without_victim == nullptr || without_victim == pods) return std::nullopt;
  without_victim.reset();
  constexpr std::chrono::milliseconds soon{1};  // it lies ahead, as every wake-up that is asked for
  wake_at = now + soon;
  return WakeAt{wake_at};
}

std::optional<ArmLevels> PassContext::levels_to_arm(const Observations& observations) {
  std::vector<Level> levels;
  for (const auto& threshold : policy.thresholds) {
    const auto& observation = observations[threshold.signal];
    if (!observation) continue;
    const Level level{threshold.signal, threshold.value.of(observation->capacity), threshold.is_hard()};
    if (std::ranges::find(levels, level) == levels.end()) levels.push_back(level);
  }
  if (levels == armed) return std::nullopt;
  armed = levels;
  return ArmLevels{std::move(levels)};
}

}  // namespace evictd::core
