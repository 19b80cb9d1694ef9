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

}  // namespace evictd::core
