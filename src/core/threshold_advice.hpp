#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "core/observation.hpp"
#include "core/threshold.hpp"

namespace evictd::core {

/// Where the kernel itself begins to defend its memory, bytes, of all zones together (/proc/zoneinfo: low, min).
struct ZoneWatermarks {
  std::int64_t low = 0;  ///< below it the kernel reclaims in the background
  std::int64_t min = 0;  ///< below it a process that allocates has to reclaim, and may be killed
};

/// What was seen of the node's memory.
struct MemoryEvidence {
  Duration watched{};            ///< for how long
  std::uint64_t crossings = 0;   ///< how many evictions for memory.available were carried through
  double peak_fill_rate = 0;     ///< bytes a second: the fastest that memory.available fell
  Duration release_time{};       ///< the longest from a wake-up to the first memory that came back
  std::int64_t overshoot = 0;    ///< bytes: the furthest that memory.available fell below a threshold
  double reclaimable_share = 0;  ///< 0 to 1: of what was available when it was shortest, how much was file cache
  /// Absent where the node is a cgroup: its limit has no watermarks.
  std::optional<ZoneWatermarks> watermarks{};
};

/// One summand of a suggestion.
struct AdviceStep {
  std::string what;        ///< "what is taken until the first memory is back"
  std::string arithmetic;  ///< "412.0Mi/s x 38ms"
  std::int64_t bytes = 0;  ///< what it adds
};

struct ThresholdAdvice {
  std::int64_t bytes = 0;  ///< the smallest hard threshold on memory.available that would have held
  std::vector<AdviceStep> steps;
  std::vector<std::string> doubts;  ///< why the figure may be wrong
};

/// Memory enough for what is taken while evictd acts, at the worst that was seen, above what the kernel keeps for
/// itself. `assumed_release` stands in where no eviction was seen. Rounded up to a MiB.
[[nodiscard]] ThresholdAdvice suggest_memory_threshold(const MemoryEvidence& evidence, Duration assumed_release);

/// What is wrong with the thresholds on a node that was observed so, a line each: one that can never fire, one that is
/// always met, one that the kernel's own defence comes before. (kubernetes#131319)
[[nodiscard]] std::vector<std::string> doubtful_thresholds(std::span<const Threshold> thresholds,
                                                           const Observations& observations,
                                                           const std::optional<ZoneWatermarks>& watermarks);

}  // namespace evictd::core
