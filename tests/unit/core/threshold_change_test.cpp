#include "core/threshold_change.hpp"

#include <doctest/doctest.h>

#include "fixture/node.hpp"

namespace evictd::core::threshold_change_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using fixture::observed;
using fixture::threshold;
using fixture::operator""_GiB;

using Lines = std::vector<std::string>;

using Thresholds = std::vector<Threshold>;

ThresholdValue percent(float value) { return {Percentage{value / 100}}; }

}  // namespace

TEST_CASE("differences name what comes, goes and changes, in the order of the signals") {
  const auto before = Thresholds({threshold(NodefsAvailable, percent(10)), threshold(MemoryAvailable, "100Mi")});
  const auto after = Thresholds(
      {threshold(MemoryAvailable, "500Mi"), threshold(MemoryAvailable, "1Gi", 90s), threshold(PidAvailable, "1000")});
  CHECK(differences(before, after) == Lines{"memory.available: 100Mi -> 500Mi",
                                            "memory.available (soft): none -> 1Gi for 1m30s",
                                            "nodefs.available: 10% -> none", "pid.available: none -> 1k"});
  CHECK(differences(before, before).empty());
}

TEST_CASE("where a threshold comes from is no difference, and neither are copies and derived ones") {
  auto copy = threshold(AllocatableMemoryAvailable, "100Mi");
  copy.source = ThresholdSource::EnforceNodeAllocatable;
  auto by_default = threshold(MemoryAvailable, "100Mi");
  by_default.source = ThresholdSource::Default;
  const std::vector before{by_default};
  const std::vector after{threshold(MemoryAvailable, "100Mi"), copy};
  CHECK(differences(before, after).empty());
}

TEST_CASE("a soft threshold without a grace period is not mixed up with the hard one") {
  auto soft = threshold(MemoryAvailable, "200Mi");
  soft.source = ThresholdSource::EvictionSoft;
  const auto hard = threshold(MemoryAvailable, "100Mi");
  CHECK(differences(std::vector{hard, soft}, std::vector{threshold(MemoryAvailable, "50Mi"), soft}) ==
        Lines{"memory.available: 100Mi -> 50Mi"});
  CHECK(differences(std::vector{hard, soft}, std::vector{hard}) == Lines{"memory.available (soft): 200Mi -> none"});
}

TEST_CASE("a minimum reclaim is part of what is told") {
  auto with_reclaim = threshold(MemoryAvailable, "100Mi");
  with_reclaim.min_reclaim = threshold(MemoryAvailable, "50Mi").value;
  CHECK(differences(std::vector{threshold(MemoryAvailable, "100Mi")}, std::vector{with_reclaim}) ==
        Lines{"memory.available: 100Mi -> 100Mi, at least 50Mi reclaimed"});
}

TEST_CASE("pods would go at once where a new hard threshold is met and no hard one was") {
  const auto node = observed({{MemoryAvailable, 3_GiB, 8_GiB}});
  const std::vector calm{threshold(MemoryAvailable, "1Gi")};
  CHECK(evict_at_once(calm, std::vector{threshold(MemoryAvailable, "4Gi")}, node) ==
        Lines{"memory.available<4Gi: 3Gi available"});
  CHECK(evict_at_once(calm, std::vector{threshold(MemoryAvailable, "2Gi")}, node).empty());
  CHECK(evict_at_once({}, std::vector{threshold(MemoryAvailable, percent(50))}, node).size() == 1);
  // A soft one gives time to take it back.
  CHECK(evict_at_once(calm, std::vector{threshold(MemoryAvailable, "4Gi", 1min)}, node).empty());
  // It evicts already, whatever becomes of its value.
  const std::vector acting{threshold(MemoryAvailable, "4Gi")};
  CHECK(evict_at_once(acting, std::vector{threshold(MemoryAvailable, "5Gi")}, node).empty());
  // What is not measured is met by nothing.
  CHECK(evict_at_once({}, std::vector{threshold(PidAvailable, "1")}, node).empty());
}

TEST_CASE("a revision names the thresholds, not their order") {
  const std::vector one{threshold(MemoryAvailable, "1Gi"), threshold(NodefsAvailable, percent(10))};
  const std::vector other{threshold(NodefsAvailable, percent(10)), threshold(MemoryAvailable, "1Gi")};
  CHECK(revision(one) == revision(other));
  CHECK(revision(one).size() == 16);
  CHECK(revision(one) != revision(std::vector{threshold(MemoryAvailable, "1Gi")}));
  CHECK(revision({}) != revision(one));
  CHECK(revision(std::vector{threshold(MemoryAvailable, "1Gi")}) !=
        revision(std::vector{threshold(MemoryAvailable, "1Gi", 1min)}));
}

}  // namespace evictd::core::threshold_change_test
