#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/duration.hpp"

namespace evictd::agent {

/// How long something took, over and over: counts in fixed buckets, as Prometheus has its histograms. Recording is a
/// few additions and allocates nothing.
class LatencyHistogram {
 public:
  /// The upper bounds of all buckets but the last, which has none; a time that equals a bound lies below it. From
  /// 100 µs, which is more than a decision takes on a calm node, to a minute, when waiting for a cleanup ends.
  [[nodiscard]] static std::span<const core::Duration> bounds();

  /// A negative time counts as none.
  void record(core::Duration time);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] core::Duration sum() const { return sum_; }
  [[nodiscard]] core::Duration max() const { return max_; }
  /// How many times lie in each bucket, not added up; one more than there are bounds.
  [[nodiscard]] std::span<const std::uint64_t> buckets() const { return buckets_; }

  /// The time that the part `share` (0 to 1) of all does not exceed, as well as buckets can tell: times are taken to
  /// lie evenly between the bounds of their bucket, of which the last ends at the longest time. 0 without any.
  [[nodiscard]] core::Duration quantile(double share) const;

  static constexpr std::size_t bound_count = 18;

 private:
  std::array<std::uint64_t, bound_count + 1> buckets_{};
  std::uint64_t count_ = 0;
  core::Duration sum_{};
  core::Duration max_{};
};

/// A part of an eviction.
enum class Phase : std::uint8_t {
  Decision,      ///< from the wake-up until the pod was chosen
  FirstKill,     ///< from the decision until its processes were killed
  FirstRelease,  ///< from the decision until the first of its memory was back
  Cleanup,       ///< from the decision until nothing was left of it
};
[[nodiscard]] std::string_view name(Phase phase);   ///< "decision", "first_kill", "first_release", "cleanup"
[[nodiscard]] std::string_view since(Phase phase);  ///< where it begins: "wake_up" or "decision"

/// The histograms of all stages, for each signal or other cause of its own: a shortage of disk is decided upon after
/// directories were walked, and would hide how fast memory is. There are as many as stages and causes that occurred.
class Latencies {
 public:
  /// By the cause's name and the stage, in order.
  using Histograms = std::map<std::pair<std::string, Phase>, LatencyHistogram, std::less<>>;

  void record(std::string_view cause, Phase phase, core::Duration time) {
    histograms_[{std::string(cause), phase}].record(time);
  }
  [[nodiscard]] const Histograms& histograms() const { return histograms_; }

 private:
  Histograms histograms_;
};

}  // namespace evictd::agent
