#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "testbed/traced_calls.hpp"

namespace bench {

/// The stages from evictd's wake-up to its first signal, each by what ends it.
inline constexpr std::array<std::string_view, 4> path_stages{"observed", "measured", "decided", "signalled"};

/// When the first three ended, by evictd's own event.
struct PathTimes {
  std::chrono::steady_clock::time_point woken;
  std::array<std::chrono::steady_clock::time_point, path_stages.size() - 1> ends{};
};

/// What one stage took.
struct PathStage {
  std::size_t calls = 0;  ///< system calls
  std::size_t opened = 0;
  std::size_t listed = 0;                         ///< pieces of directories
  std::optional<std::uint64_t> instructions = 0;  ///< outside of the kernel; absent where the machine counts none
  std::chrono::nanoseconds longest_gap{};         ///< between two calls, with what it takes to stop for them
};
using Path = std::array<PathStage, path_stages.size()>;

/// Of the calls those from the wake-up on, with the one by which it was learnt, to the first signal. Absent where no
/// process was signalled.
[[nodiscard]] std::optional<Path> path_of(std::span<const testbed::TracedCall> calls, const PathTimes& times);

}  // namespace bench
