#include "core/threshold_overlay.hpp"

#include <doctest/doctest.h>

namespace evictd::core::threshold_overlay_test {
namespace {

using Entries = EvictionSettings::BySignal;

EvictionSettings hard(Entries entries) {
  EvictionSettings settings;
  settings.hard = std::move(entries);
  return settings;
}

}  // namespace

TEST_CASE("an overlay sets and takes away, and leaves the rest") {
  auto settings = hard({{"memory.available", "100Mi"}, {"nodefs.available", "10%"}});
  settings.soft = {{"memory.available", "1Gi"}};
  settings.soft_grace_period = {{"memory.available", "1m"}};
  ThresholdOverlay overlay;
  overlay.hard = {{"memory.available", "500Mi"}, {"nodefs.available", std::nullopt}};
  overlay.minimum_reclaim = {{"memory.available", "50Mi"}};
  const auto result = overlaid(settings, overlay);
  CHECK(result.hard == Entries{{"memory.available", "500Mi"}});
  CHECK(result.soft == settings.soft);
  CHECK(result.soft_grace_period == settings.soft_grace_period);
  CHECK(result.minimum_reclaim == Entries{{"memory.available", "50Mi"}});
}

TEST_CASE("a hard entry on top of the defaults leaves the other defaults in force") {
  ThresholdOverlay overlay;
  overlay.hard = {{"memory.available", "500Mi"}};
  auto expected = default_hard_thresholds();
  expected["memory.available"] = "500Mi";
  CHECK(overlaid({}, overlay).hard == expected);

  auto merging = hard({{"nodefs.available", "20%"}});
  merging.merge_defaults = true;
  expected["nodefs.available"] = "20%";
  const auto result = overlaid(merging, overlay);
  CHECK(result.hard == expected);
  CHECK_FALSE(result.merge_defaults);
}

TEST_CASE("a default that is taken away stays away") {
  ThresholdOverlay overlay;
  overlay.hard = {{"memory.available", std::nullopt}};
  auto merging = hard({});
  merging.merge_defaults = true;
  CHECK_FALSE(overlaid(merging, overlay).hard->contains("memory.available"));
}

TEST_CASE("without a hard entry the defaults stay defaults") {
  ThresholdOverlay overlay;
  overlay.soft = {{"memory.available", "1Gi"}};
  CHECK_FALSE(overlaid({}, overlay).hard.has_value());
}

TEST_CASE("of two overlays the upper one has the last word, also when it takes away") {
  ThresholdOverlay below;
  below.hard = {{"memory.available", "1Gi"}, {"pid.available", "100"}};
  ThresholdOverlay above;
  above.hard = {{"memory.available", std::nullopt}};
  const auto both = stacked(below, above);
  CHECK(both.hard == ThresholdOverlay::BySignal{{"memory.available", std::nullopt}, {"pid.available", "100"}});
  CHECK(overlaid(hard({}), both).hard == overlaid(overlaid(hard({}), below), above).hard);
}

}  // namespace evictd::core::threshold_overlay_test
