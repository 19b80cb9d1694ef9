#include "core/threshold_advice.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "fixture/node.hpp"

namespace evictd::core::threshold_advice_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using fixture::observed;
using fixture::threshold;
using fixture::operator""_GiB;

constexpr std::int64_t mib = 1 << 20;

MemoryEvidence seen() {
  return {.watched = 48h,
          .crossings = 12,
          .peak_fill_rate = 1000.0 * mib,
          .release_time = 40ms,
          .overshoot = 10 * mib,
          .reclaimable_share = 0,
          .watermarks = ZoneWatermarks{.low = 60 * mib, .min = 48 * mib}};
}

std::int64_t sum(const ThresholdAdvice& advice) {
  return std::accumulate(advice.steps.begin(), advice.steps.end(), std::int64_t{0},
                         [](std::int64_t total, const AdviceStep& step) { return total + step.bytes; });
}

ThresholdValue percent(float value) { return {Percentage{value / 100}}; }

}  // namespace

TEST_CASE("what the kernel keeps and what is taken until memory is back make the threshold") {
  const auto advice = suggest_memory_threshold(seen(), 1s);
  CHECK(advice.bytes == 100 * mib);
  REQUIRE(advice.steps.size() == 2);
  CHECK(advice.steps[0].bytes == 60 * mib);
  CHECK(advice.steps[1].arithmetic == "1000.0Mi/s x 40ms");
  CHECK(advice.doubts.empty());
}

TEST_CASE("an overshoot beyond what the rate explains is added") {
  auto evidence = seen();
  evidence.overshoot = 70 * mib;
  const auto advice = suggest_memory_threshold(evidence, 1s);
  CHECK(advice.bytes == 130 * mib);
  CHECK(sum(advice) == advice.bytes);
}

TEST_CASE("file cache that counts as available asks for more of it") {
  auto evidence = seen();
  evidence.reclaimable_share = 0.5;
  const auto advice = suggest_memory_threshold(evidence, 1s);
  CHECK(advice.bytes == (60 + 80) * mib);
  evidence.reclaimable_share = 1;  // nothing but cache: bounded
  CHECK(suggest_memory_threshold(evidence, 1s).bytes == (60 + 400) * mib);
}

TEST_CASE("the steps add up to the suggestion, but for rounding up to a MiB") {
  auto evidence = seen();
  evidence.peak_fill_rate = 123456789.5;
  evidence.release_time = 17ms;
  evidence.reclaimable_share = 0.37;
  evidence.overshoot = 5'000'001;
  const auto advice = suggest_memory_threshold(evidence, 1s);
  CHECK(advice.bytes % mib == 0);
  CHECK(advice.bytes >= sum(advice));
  CHECK(advice.bytes - sum(advice) <= mib);
}

TEST_CASE("where nothing was seen the assumed time stands in, and it is said") {
  auto evidence = seen();
  evidence.crossings = 0;
  evidence.release_time = {};
  evidence.watched = 5min;
  evidence.watermarks.reset();
  const auto advice = suggest_memory_threshold(evidence, 100ms);
  CHECK(advice.bytes == 100 * mib);
  REQUIRE(advice.steps.size() == 1);
  CHECK(advice.steps[0].arithmetic == "1000.0Mi/s x 100ms (assumed)");
  CHECK(advice.doubts == std::vector<std::string>{"only 0 evictions for memory were seen",
                                                  "the node was watched for 5m0s only: its worst hour may be to come"});
  evidence.crossings = 1;
  CHECK(suggest_memory_threshold(evidence, 100ms).doubts.front() == "only 1 eviction for memory was seen");
}

TEST_CASE("thresholds that cannot do what they are for are named") {
  const auto node = observed({{MemoryAvailable, 4_GiB, 8_GiB}, {NodefsAvailable, 50_GiB, 100_GiB}});
  const ZoneWatermarks marks{.low = 60 * mib, .min = 48 * mib};
  const auto doubts = [&](const std::vector<Threshold>& thresholds) {
    return doubtful_thresholds(thresholds, node, marks);
  };
  using Lines = std::vector<std::string>;
  CHECK(doubts({threshold(MemoryAvailable, "100Mi"), threshold(NodefsAvailable, percent(10))}).empty());
  CHECK(doubts({threshold(MemoryAvailable, "50Mi")}) ==
        Lines{"memory.available<50Mi: it fires late: below 60Mi (low watermark of all zones) the kernel reclaims "
              "already"});
  CHECK(doubts({threshold(MemoryAvailable, "10Mi")}) ==
        Lines{"memory.available<10Mi: it can hardly fire: the kernel never gives out its last 48Mi (min watermark of "
              "all zones)"});
  CHECK(doubts({threshold(NodefsAvailable, percent(0))}).size() == 1);
  CHECK(doubts({threshold(MemoryAvailable, "8Gi")}) ==
        Lines{"memory.available<8Gi: it is always met: the node has no more than that"});
  CHECK(doubts({threshold(ImagefsAvailable, percent(10))}) ==
        Lines{"imagefs.available<10%: it cannot fire while the signal is not measured on this node"});
  auto copy = threshold(AllocatableMemoryAvailable, "10Mi");
  copy.source = ThresholdSource::EnforceNodeAllocatable;
  CHECK(doubts({copy}).empty());
  CHECK(doubtful_thresholds(std::vector{threshold(MemoryAvailable, "10Mi")}, node, std::nullopt).empty());
}

}  // namespace evictd::core::threshold_advice_test
