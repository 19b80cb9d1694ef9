#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "core/duration.hpp"
#include "core/pod.hpp"

namespace evictd::core {

/// The pod's own terminationGracePeriodSeconds; absent where it says none. Pods write any number of 64 bits: what is
/// longer than a good 30 years is that, so that sums of a few stay within Duration.
[[nodiscard]] inline std::optional<Duration> own_grace_period(const Pod& pod) {
  constexpr std::chrono::seconds longest{1'000'000'000};
  if (!pod.termination_grace_period_seconds) return std::nullopt;
  return std::chrono::seconds{std::clamp<std::int64_t>(*pod.termination_grace_period_seconds, 0, longest.count())};
}

/// The least time that a pod gets which gets any: only what goes by a hard threshold or for a limit of its own, or at
/// the end of a shutdown, is killed at once. (kubelet 1.36: calculateEffectiveGracePeriod)
inline constexpr std::chrono::seconds least_grace_period{1};

/// What a pod gets that may take its own time, as for a preemption: terminationGracePeriodSeconds, which the API server
/// has be 30 where nothing is said.
[[nodiscard]] inline Duration grace_period_of(const Pod& pod) {
  constexpr std::chrono::seconds kubernetes_default{30};
  return std::max<Duration>(least_grace_period, own_grace_period(pod).value_or(kubernetes_default));
}

/// What the runtime is told to give a container of a pod that gets `grace_period`, of which this much is `spent`: with
/// any time at all 2 s, which is enough to end by itself. (kubelet 1.36: minimumGracePeriodInSeconds)
[[nodiscard]] inline Duration stop_time(Duration grace_period, Duration spent = Duration::zero()) {
  constexpr std::chrono::seconds least{2};
  return grace_period > Duration::zero() ? std::max<Duration>(least, grace_period - spent) : grace_period;
}

/// How long whoever needs the room of a pod that gets `grace_period` waits for its end: half as long again, and at
/// least 10 s. (kubelet 1.36: killPodNow)
[[nodiscard]] inline Duration kill_timeout(Duration grace_period) {
  constexpr std::chrono::seconds least{10};
  return std::max<Duration>(least, grace_period + grace_period / 2);
}

}  // namespace evictd::core
