#include "admission/node_reservation.hpp"

#include <doctest/doctest.h>

#include "core/eviction_settings.hpp"
#include "fixture/pods.hpp"

namespace evictd::admission::node_reservation_test {
namespace {

using fixture::amounts;

const auto capacity = amounts({{"cpu", "4"}, {"memory", "8Gi"}, {"ephemeral-storage", "100Gi"}});

std::vector<core::Threshold> thresholds(core::EvictionSettings::BySignal hard) {
  core::EvictionSettings settings;
  settings.hard = std::move(hard);
  settings.soft = {{"memory.available", "4Gi"}};
  settings.soft_grace_period = {{"memory.available", "1m"}};
  return fixture::value_of(core::make_policy(settings)).thresholds;
}

}  // namespace

TEST_CASE("nothing is kept back of a node that reserves nothing") {
  CHECK(node_reservation(capacity, {}, {}, thresholds({})).empty());
}

TEST_CASE("reservations add up, and with them what hard thresholds keep free") {
  CHECK(node_reservation(capacity, amounts({{"cpu", "500m"}, {"memory", "1Gi"}}),
                         amounts({{"cpu", "250m"}, {"ephemeral-storage", "10Gi"}, {"pid", "100"}}),
                         thresholds({{"memory.available", "1Gi"}, {"nodefs.available", "5Gi"}})) ==
        amounts({{"cpu", "750m"}, {"memory", "2Gi"}, {"ephemeral-storage", "15Gi"}}));
}

TEST_CASE("a soft threshold without a grace period keeps nothing free, for it is none of evictionHard") {
  core::EvictionSettings settings;
  settings.hard = core::EvictionSettings::BySignal{{"memory.available", "100Mi"}};
  settings.soft = {{"memory.available", "4Gi"}};
  settings.soft_grace_period = {{"memory.available", "0s"}};
  const auto both = fixture::value_of(core::make_policy(settings)).thresholds;
  CHECK(node_reservation(capacity, {}, {}, both) == amounts({{"memory", "100Mi"}}));
}

TEST_CASE("a percentage is a share of the capacity") {
  CHECK(node_reservation(capacity, {}, {}, thresholds({{"memory.available", "25%"}})) == amounts({{"memory", "2Gi"}}));
}

TEST_CASE("thresholds of other signals keep nothing free") {
  CHECK(
      node_reservation(capacity, {}, {},
                       thresholds({{"imagefs.available", "15%"}, {"nodefs.inodesFree", "5%"}, {"pid.available", "9"}}))
          .empty());
}

}  // namespace evictd::admission::node_reservation_test
