#pragma once
#include <array>
#include <cstddef>
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
/// Beside their milliseconds: how far the node's usage went beyond the threshold, MiB.
inline constexpr std::size_t overshoot = latency_stages.size();

struct LatencyTrial {
  Variant variant;
  std::array<std::optional<double>, overshoot + 1> figures{};
};

/// In the order in which they come first.
[[nodiscard]] std::vector<Variant> variants_of(const std::vector<LatencyTrial>& trials);
/// One figure of all trials of the variant.
[[nodiscard]] Summary summarize(const std::vector<LatencyTrial>& trials, Variant variant, std::size_t figure);

/// A strip for each variant with every trial's stages along a logarithmic axis of time.
[[nodiscard]] std::string latency_svg(const std::vector<LatencyTrial>& trials);

}  // namespace bench
