#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/statistics.hpp"
#include "benchmarks/variant.hpp"

namespace bench {

/// The stages of an eviction, each counted from the moment at which the observer first saw the node beyond the
/// threshold. "killed" with CRI is the runtime's answer, which comes after the kill; "growth over" is the same for all.
inline constexpr std::array<std::string_view, 7> latency_stages{"woken",         "decided",  "killed", "growth over",
                                                                "first release", "released", "cleanup"};

struct LatencyTrial {
  Variant variant;
  std::array<std::optional<double>, latency_stages.size()> milliseconds{};
  double overshoot_mib = 0;  ///< how far the node's usage went beyond the threshold
};

struct LatencySummary {
  Variant variant;
  std::array<Summary, latency_stages.size()> milliseconds{};
  Summary overshoot_mib{};
};

/// Trials of each of these variants in turn, so many each.
[[nodiscard]] std::vector<LatencyTrial> measure_latency(int trials, std::vector<Variant> variants);
/// In the order in which the variants come first.
[[nodiscard]] std::vector<LatencySummary> summarize(const std::vector<LatencyTrial>& trials);

[[nodiscard]] std::string latency_table(const std::vector<LatencySummary>& summaries, int trials);
[[nodiscard]] std::string latency_json(const std::vector<LatencySummary>& summaries,
                                       const std::vector<LatencyTrial>& trials);
/// A strip for each variant with every trial's stages along a logarithmic axis of time.
[[nodiscard]] std::string latency_svg(const std::vector<LatencySummary>& summaries,
                                      const std::vector<LatencyTrial>& trials);

}  // namespace bench
