#pragma once
#include <chrono>

#include "core/duration.hpp"

namespace evictd::os {

/// The kernel's monotonic clock (CLOCK_MONOTONIC). What a test simulates asks agent::Clock instead.
inline core::Instant now() { return std::chrono::steady_clock::now(); }

}  // namespace evictd::os
