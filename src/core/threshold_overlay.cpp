#include "core/threshold_overlay.hpp"

namespace evictd::core {
namespace {

using Entries = EvictionSettings::BySignal;

void lay_over(Entries& entries, const ThresholdOverlay::BySignal& above) {
  for (const auto& [signal, value] : above)
    if (value)
      entries.insert_or_assign(signal, *value);
    else
      entries.erase(signal);
}

}  // namespace

ThresholdOverlay stacked(ThresholdOverlay below, const ThresholdOverlay& above) {
  for (const auto field : {&ThresholdOverlay::hard, &ThresholdOverlay::soft, &ThresholdOverlay::soft_grace_period,
                           &ThresholdOverlay::minimum_reclaim})
    for (const auto& [signal, value] : above.*field) (below.*field).insert_or_assign(signal, value);
  return below;
}

EvictionSettings::BySignal hard_in_force(const EvictionSettings& settings) {
  if (!settings.hard) return default_hard_thresholds();
  auto entries = *settings.hard;
  if (settings.merge_defaults) entries.insert(default_hard_thresholds().begin(), default_hard_thresholds().end());
  return entries;
}

EvictionSettings overlaid(EvictionSettings settings, const ThresholdOverlay& overlay) {
  if (!overlay.hard.empty()) {
    settings.hard = hard_in_force(settings);
    settings.merge_defaults = false;
    lay_over(*settings.hard, overlay.hard);
  }
  lay_over(settings.soft, overlay.soft);
  lay_over(settings.soft_grace_period, overlay.soft_grace_period);
  lay_over(settings.minimum_reclaim, overlay.minimum_reclaim);
  return settings;
}

}  // namespace evictd::core
