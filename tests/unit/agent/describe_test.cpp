#include "agent/describe.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "fixture/node.hpp"
#include "fixture/pods.hpp"

namespace evictd::agent::describe_test {

using namespace std::chrono_literals;
using enum core::Signal;

TEST_CASE("amounts are for people: bytes in binary units, all else as it is counted") {
  CHECK(human_bytes(0) == "0.0 KiB");
  CHECK(human_bytes(261'934'284) == "249.8 MiB");
  CHECK(human_bytes(std::int64_t{5} << 40) == "5.0 TiB");
  CHECK(human_bytes(-(1 << 20)) == "-1.0 MiB");
  CHECK(amount(NodefsAvailable, 1 << 30) == "1.0 GiB");
  CHECK(amount(PidAvailable, 5000) == "5000");
  CHECK(amount(NodefsInodesFree, 70) == "70");
}

TEST_CASE("a threshold is told as it is written, and as what it comes to on this node") {
  const auto hard = describe_threshold(fixture::threshold(MemoryAvailable, fixture::share(10)), 1000);
  CHECK(hard.signal() == "memory.available");
  CHECK(hard.value() == "10%");
  CHECK(hard.resolved() == 100);
  CHECK_FALSE(hard.has_grace_period());
  CHECK(hard.minimum_reclaim().empty());
  const auto soft =
      describe_threshold(fixture::with_min_reclaim(fixture::threshold(MemoryAvailable, "1Gi", 90s), "2Gi"), 1000);
  CHECK(soft.grace_period().seconds() == 90);
  CHECK(soft.minimum_reclaim() == "2Gi");
}

TEST_CASE("a ranked pod is told with what puts it there") {
  const auto pod = std::make_shared<const core::Pod>(fixture::with_priority(fixture::pod("a"), 2'000'000'000));
  const auto ranked = describe_ranked({.pod = pod, .usage = 30, .request = 10, .at_most = true});
  CHECK(ranked.pod().namespace_() == "default");
  CHECK(ranked.pod().uid() == "a");
  CHECK(ranked.usage() == 30);
  CHECK(ranked.request() == 10);
  CHECK(ranked.at_most());
  CHECK(ranked.critical());
  CHECK(ranked.priority() == 2'000'000'000);
}

TEST_CASE("a wake source is told with a level and a time only where it has them") {
  const auto bare = describe_source({.name = "psi", .state = "armed", .wakes = 3, .missed = 1, .spurious = 2});
  CHECK(bare.wake_ups() == 3);
  CHECK(bare.missed() == 1);
  CHECK(bare.spurious() == 2);
  CHECK(bare.arm_level_bytes() == 0);
  CHECK_FALSE(bare.has_last_wake());
  const auto armed = describe_source({.name = "memcg", .state = "armed", .level = 77, .last_wake = core::Instant{1h}});
  CHECK(armed.arm_level_bytes() == 77);
  CHECK(armed.has_last_wake());
}

TEST_CASE("a source of specs is told with its state, and since when it is stale") {
  const auto synced = describe_pod_source(
      {.origin = pods::SpecOrigin::Manifests, .state = pods::SpecSourceStatus::State::Synced, .pods = 4});
  CHECK(synced.state() == "synced");
  CHECK(synced.pods() == 4);
  CHECK_FALSE(synced.has_stale_since());
}

TEST_CASE("durations and moments keep their nanoseconds") {
  const auto duration = to_duration(2s + 5ns);
  CHECK(duration.seconds() == 2);
  CHECK(duration.nanos() == 5);
  const auto earlier = wall_time(core::Instant{1h});
  const auto later = wall_time(core::Instant{1h + 3s});
  CHECK(later.seconds() - earlier.seconds() >= 2);
  CHECK(later.seconds() - earlier.seconds() <= 4);
}

TEST_CASE("latencies are told with their buckets, the last of which has no bound") {
  LatencyHistogram histogram;
  histogram.record(10ms);
  histogram.record(20ms);
  const auto message = describe_latency("memory.available", Phase::FirstKill, histogram);
  CHECK(message.signal() == "memory.available");
  CHECK(message.count() == 2);
  CHECK(message.sum_us() == 30'000);
  CHECK(message.max_us() == 20'000);
  REQUIRE(message.buckets_size() == static_cast<int>(LatencyHistogram::bounds().size()) + 1);
  CHECK(message.buckets(message.buckets_size() - 1).upper_us() == 0);
}

}  // namespace evictd::agent::describe_test
