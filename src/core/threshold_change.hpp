#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/observation.hpp"
#include "core/threshold.hpp"

namespace evictd::core {

// What becomes of a node when its thresholds change.

/// A line for each threshold that comes, goes or changes, in the order of the signals:
/// "memory.available: 100Mi -> 500Mi", "nodefs.available (soft): none -> 15% for 1m30s". Where a threshold comes from
/// is no difference.
[[nodiscard]] std::vector<std::string> differences(std::span<const Threshold> before, std::span<const Threshold> after);

/// A line for each hard threshold of `after` that is met by what was observed while no hard one of `before` on that
/// signal was: "memory.available<500Mi: 420Mi available". Pods would go at once, for nothing but the change.
[[nodiscard]] std::vector<std::string> evict_at_once(std::span<const Threshold> before,
                                                     std::span<const Threshold> after,
                                                     const Observations& observations);

/// Names these very thresholds, whatever their order and wherever they come from: 16 hexadecimal digits.
[[nodiscard]] std::string revision(std::span<const Threshold> thresholds);

/// The threshold as an operator would write it down: "500Mi", "15% for 1m30s, at least 1Gi reclaimed".
[[nodiscard]] std::string in_words(const Threshold& threshold);

}  // namespace evictd::core
