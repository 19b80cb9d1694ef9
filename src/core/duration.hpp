#pragma once
#include <chrono>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace evictd::core {

using Duration = std::chrono::nanoseconds;

/// A point on the monotonic clock. The core never reads a clock: callers pass the time, so that simulations and tests
/// own it.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// Go's duration syntax, as Kubernetes configuration uses it: "1m30s", "1.5h", "-250ms", "0". A bare number other than
/// 0 has no unit and is an error; so is anything beyond ±2^63 ns (about 292 years).
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

/// As Go prints it: "1m30s", "2h0m0s", "250ms", "0s".
[[nodiscard]] std::string to_string(Duration duration);

}  // namespace evictd::core
