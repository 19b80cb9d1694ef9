#pragma once
#include <chrono>
#include <string>

#include "core/duration.hpp"

namespace evictd::kube {

/// What API objects tell times by.
using WallTime = std::chrono::system_clock::time_point;

/// A moment of the monotonic clock on the wall clock, as that stands now.
[[nodiscard]] WallTime wall_time_of(core::Instant time);

/// "2024-05-01T12:00:00Z": whole seconds, as metav1.Time has them.
[[nodiscard]] std::string rfc3339(WallTime time);

}  // namespace evictd::kube
