#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/statistics.hpp"
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

struct PathOptions {
  std::vector<std::size_t> pods{5, 110};
  int evictions = 5;  ///< at each size, each by an evictd of its own
};

/// Of all evictions at one size.
struct PathResult {
  struct Stage {
    Summary calls{};
    Summary opened{};
    Summary listed{};
    std::optional<Summary> instructions{};
    Summary longest_gap_us{};
  };

  std::size_t pods = 0;
  std::array<Stage, path_stages.size()> stages{};
  Stage together{};
};

/// Counts what evictd does between its wake-up and its first signal, by ptrace(2) and perf_event_open(2). Traced it is
/// slower by far, so no times are told but the gaps. Real cgroups, and a stand-in for the runtime.
[[nodiscard]] std::vector<PathResult> measure_path(const PathOptions& options);

[[nodiscard]] std::string path_table(const std::vector<PathResult>& results, const PathOptions& options);
[[nodiscard]] std::string path_json(const std::vector<PathResult>& results);

}  // namespace bench
