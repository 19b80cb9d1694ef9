#pragma once
#include <chrono>

#include "core/duration.hpp"
#include "wake/poll_interval.hpp"

namespace evictd::wake {

// How fast what is watched is assumed to run out, and why. What is seen to go faster raises the rate (PollInterval).

/// Memory at the rate that was measured. 4 MiB: two huge pages, more than the counters' own coarseness.
[[nodiscard]] constexpr PollSettings memory_pace(double rate, core::Duration longest) {
  using namespace std::chrono_literals;
  return {.rate = rate, .fastest = double{1LL << 36}, .shortest = 1ms, .longest = longest, .step = 4LL << 20};
}

/// A fast disk writes some GiB a second; the page cache takes more for a moment, and preallocation any amount at once,
/// which no look can foresee. Thresholds are GiB: looking every 10 ms lets 22 MiB pass.
[[nodiscard]] constexpr PollSettings disk_pace(core::Duration longest) {
  using namespace std::chrono_literals;
  return {.rate = double{2LL << 30},
          .fastest = double{16LL << 30},
          .shortest = 10ms,
          .longest = longest,
          .step = 16LL << 20};
}

/// Some processors together create 500,000 files a second where they share nothing (tmpfs, XFS groups); thresholds are
/// many thousands.
[[nodiscard]] constexpr PollSettings inode_pace(core::Duration longest) {
  using namespace std::chrono_literals;
  return {.rate = 500'000, .fastest = 4'000'000, .shortest = 10ms, .longest = longest, .step = 1000};
}

/// fork(2) takes 50 µs and more, a thread 10 µs; reading the count takes 7 µs, so not more often than every 10 ms.
[[nodiscard]] constexpr PollSettings pid_pace(core::Duration longest) {
  using namespace std::chrono_literals;
  return {.rate = 100'000, .fastest = 1'000'000, .shortest = 10ms, .longest = longest, .step = 16};
}

}  // namespace evictd::wake
