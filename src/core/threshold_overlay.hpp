#pragma once
#include <map>
#include <optional>
#include <string>

#include "core/eviction_settings.hpp"

namespace evictd::core {

/// Entries of the eviction fields that stand on top of others: what a drop-in says, or what was changed while evictd
/// runs.
struct ThresholdOverlay {
  /// By signal; absent: the entry below is taken away.
  using BySignal = std::map<std::string, std::optional<std::string>, std::less<>>;

  BySignal hard;               ///< evictionHard
  BySignal soft;               ///< evictionSoft
  BySignal soft_grace_period;  ///< evictionSoftGracePeriod
  BySignal minimum_reclaim;    ///< evictionMinimumReclaim

  [[nodiscard]] bool empty() const {
    return hard.empty() && soft.empty() && soft_grace_period.empty() && minimum_reclaim.empty();
  }

  friend bool operator==(const ThresholdOverlay&, const ThresholdOverlay&) = default;
};

/// `below` with the entries of `above` on top.
[[nodiscard]] ThresholdOverlay stacked(ThresholdOverlay below, const ThresholdOverlay& above);

/// The settings with the overlay on top. Where it touches evictionHard, the defaults that were in force are written
/// out, so that none of them comes or goes by the way.
[[nodiscard]] EvictionSettings overlaid(EvictionSettings settings, const ThresholdOverlay& overlay);

/// The hard thresholds in force by these settings, defaults included.
[[nodiscard]] EvictionSettings::BySignal hard_in_force(const EvictionSettings& settings);

}  // namespace evictd::core
