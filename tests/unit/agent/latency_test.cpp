#include "agent/latency.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

namespace evictd::agent::latency_test {
namespace {

using namespace std::chrono_literals;

LatencyHistogram of(std::initializer_list<core::Duration> times) {
  LatencyHistogram histogram;
  for (const auto time : times) histogram.record(time);
  return histogram;
}

std::uint64_t in_bucket_up_to(const LatencyHistogram& histogram, core::Duration bound) {
  const auto bounds = LatencyHistogram::bounds();
  return histogram.buckets()[static_cast<std::size_t>(std::ranges::find(bounds, bound) - bounds.begin())];
}

}  // namespace

TEST_CASE("buckets rise from 100 µs to a minute, and one more takes what took longer") {
  const auto bounds = LatencyHistogram::bounds();
  CHECK(bounds.front() == 100us);
  CHECK(bounds.back() == 60s);
  CHECK(std::ranges::is_sorted(bounds));
  CHECK(LatencyHistogram{}.buckets().size() == bounds.size() + 1);
}

TEST_CASE("a time lies in the bucket whose bound it does not exceed") {
  const auto histogram = of({100us, 101us, 200us, 3ms, 61s, -1s});
  CHECK(in_bucket_up_to(histogram, 100us) == 2);
  CHECK(in_bucket_up_to(histogram, 200us) == 2);
  CHECK(in_bucket_up_to(histogram, 5ms) == 1);
  CHECK(histogram.buckets().back() == 1);
  CHECK(histogram.count() == 6);
  CHECK(histogram.sum() == 61s + 3ms + 401us);
  CHECK(histogram.max() == 61s);
  CHECK(std::accumulate(histogram.buckets().begin(), histogram.buckets().end(), std::uint64_t{0}) == histogram.count());
}

TEST_CASE("a quantile lies within the bucket of the true one, and no further than the longest time") {
  LatencyHistogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.record(i * 1ms);
  CHECK(histogram.quantile(0.5) == 50ms);
  CHECK(histogram.quantile(0.9) == 90ms);
  CHECK(histogram.quantile(1) == 100ms);
  CHECK(histogram.quantile(0.01) >= 500us);
  CHECK(histogram.quantile(0.01) <= 1ms);

  CHECK(of({3ms}).quantile(1) == 3ms);
  CHECK(of({3ms}).quantile(0.5) == 2500us);
  CHECK(of({90s, 90s}).quantile(1) == 90s);
  CHECK(LatencyHistogram{}.quantile(0.5) == 0s);
}

TEST_CASE("every cause and stage has a histogram of its own") {
  Latencies latencies;
  latencies.record("memory.available", Phase::Decision, 1ms);
  latencies.record("memory.available", Phase::Cleanup, 200ms);
  latencies.record("nodefs.available", Phase::Decision, 2s);
  latencies.record("memory.available", Phase::Decision, 2ms);
  REQUIRE(latencies.histograms().size() == 3);
  const auto& [first, histogram] = *latencies.histograms().begin();
  CHECK(first == std::pair{std::string("memory.available"), Phase::Decision});
  CHECK(histogram.count() == 2);
}

TEST_CASE("each stage says where it begins") {
  CHECK(name(Phase::Decision) == "decision");
  CHECK(since(Phase::Decision) == "wake_up");
  CHECK(name(Phase::FirstRelease) == "first_release");
  CHECK(since(Phase::FirstRelease) == "decision");
}

}  // namespace evictd::agent::latency_test
