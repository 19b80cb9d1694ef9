#include "core/threshold.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "fixture/node.hpp"

namespace evictd::core::threshold_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using fixture::amount;
using fixture::observed;
using fixture::share;
using fixture::threshold;
using fixture::with_min_reclaim;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

constexpr auto max = std::numeric_limits<std::int64_t>::max();

bool met_at(const Threshold& threshold, std::int64_t available, std::int64_t capacity,
            Enforce enforce = Enforce::value_only) {
  return is_met(threshold, observed({{threshold.signal, available, capacity}}), enforce);
}

}  // namespace

TEST_CASE("an absolute threshold is met by less than its value, not by its value") {
  const auto one_gib = threshold(MemoryAvailable, "1Gi");
  CHECK(met_at(one_gib, 1_GiB - 1, 4_GiB));
  CHECK_FALSE(met_at(one_gib, 1_GiB, 4_GiB));
  CHECK(met_at(threshold(PidAvailable, "100"), -5, 1000));
}

TEST_CASE("a signal without an observation meets no threshold") {
  CHECK_FALSE(is_met(threshold(MemoryAvailable, "1Gi"), observed({{NodefsAvailable, 0, 1_GiB}}), Enforce::value_only));
}

TEST_CASE("a percentage is a float32, so 10% is a hair more than a tenth") {
  CHECK(share(10).of(100) == 10);
  CHECK(share(10).of(1000_GiB) == 107'374'184'000);                         // a tenth is ...182'400
  CHECK(met_at(threshold(NodefsAvailable, share(10)), 100_GiB, 1000_GiB));  // exactly a tenth: below already
  CHECK_FALSE(met_at(threshold(NodefsAvailable, share(10)), 10, 100));
}

TEST_CASE("a percentage of the capacity is truncated") {
  CHECK(share(10).of(99) == 9);
  CHECK(share(50).of(3) == 1);
  CHECK(share(100).of(7) == 7);
  CHECK(share(0).of(max) == 0);
  CHECK(share(10).of(0) == 0);
}

TEST_CASE("percentages beyond what can be counted are the largest number") {
  CHECK(share(100).of(max) == max);
  CHECK(share(5000).of(max) == max);
}

TEST_CASE("the minimum reclaim is required on top only where it is asked for") {
  const auto one = with_min_reclaim(threshold(MemoryAvailable, "1Gi"), "500Mi");
  CHECK_FALSE(met_at(one, 1_GiB, 4_GiB, Enforce::value_only));
  CHECK(met_at(one, 1_GiB, 4_GiB, Enforce::min_reclaim));
  CHECK(met_at(one, 1_GiB + 500_MiB - 1, 4_GiB, Enforce::min_reclaim));
  CHECK_FALSE(met_at(one, 1_GiB + 500_MiB, 4_GiB, Enforce::min_reclaim));

  auto of_share = threshold(NodefsAvailable, share(10));
  of_share.min_reclaim = share(5);
  CHECK(required(of_share, 1000, Enforce::min_reclaim) == 150);
  CHECK(required(of_share, 1000, Enforce::value_only) == 100);
}

TEST_CASE("value and minimum reclaim together may be more than can be counted") {
  const auto all = with_min_reclaim(threshold(MemoryAvailable, "8Ei"), "8Ei");
  CHECK(required(all, 4_GiB, Enforce::min_reclaim) == max);
  CHECK(met_at(all, 4_GiB, 4_GiB, Enforce::min_reclaim));
}

TEST_CASE("those that are met keep their order") {
  const std::vector thresholds{threshold(PidAvailable, "100"), threshold(MemoryAvailable, "1Gi"),
                               threshold(NodefsAvailable, "1Gi")};
  const auto result =
      met(thresholds, observed({{MemoryAvailable, 0, 4_GiB}, {PidAvailable, 0, 1000}}), Enforce::value_only);
  CHECK(result == std::vector{thresholds[0], thresholds[1]});
}

TEST_CASE("memory acts before disk and disk before process ids; within a signal hard before soft") {
  std::vector thresholds{threshold(PidAvailable, "1"),
                         threshold(ContainerfsAvailable, "1"),
                         threshold(ImagefsInodesFree, "1"),
                         threshold(ImagefsAvailable, "1"),
                         threshold(NodefsInodesFree, "1"),
                         threshold(NodefsAvailable, "1"),
                         threshold(AllocatableMemoryAvailable, "1"),
                         threshold(MemoryAvailable, "2", 1min),
                         threshold(MemoryAvailable, "1")};
  sort_by_precedence(thresholds);
  CHECK(std::ranges::is_sorted(thresholds, {}, &Threshold::signal));
  CHECK(thresholds[0].is_hard());
  CHECK_FALSE(thresholds[1].is_hard());
  CHECK(thresholds.back().signal == PidAvailable);
}

TEST_CASE("signal, value and grace period make a threshold what it is, the minimum reclaim does not") {
  const auto one = threshold(MemoryAvailable, "1Gi", 1min);
  CHECK(one.same_as(with_min_reclaim(one, "5Gi")));
  CHECK(one.same_as(threshold(MemoryAvailable, "1024Mi", 1min)));
  CHECK_FALSE(one.same_as(threshold(AllocatableMemoryAvailable, "1Gi", 1min)));
  CHECK_FALSE(one.same_as(threshold(MemoryAvailable, "2Gi", 1min)));
  CHECK_FALSE(one.same_as(threshold(MemoryAvailable, "1Gi")));
  CHECK_FALSE(one.same_as(threshold(MemoryAvailable, share(1), 1min)));
}

TEST_CASE("thresholds print as operators write them") {
  CHECK(to_string(threshold(MemoryAvailable, "150Mi")) == "memory.available<150Mi");
  CHECK(to_string(threshold(NodefsAvailable, share(10), 90s)) == "nodefs.available<10% for 1m30s");
}

TEST_CASE("percentages print as they were written, for every tenth of a percent") {
  for (int tenths = 1; tenths <= 1000; ++tenths) {
    const auto text = std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + "%";
    CHECK(share(std::stof(text)).to_string() == text);
  }
}

TEST_CASE("a threshold says where it came from") {
  CHECK(name(ThresholdSource::Default) == "default");
  CHECK(name(ThresholdSource::EvictionHard) == "evictionHard");
  CHECK(name(ThresholdSource::EvictionSoft) == "evictionSoft");
  CHECK(name(ThresholdSource::EnforceNodeAllocatable) == "enforceNodeAllocatable");
  CHECK(name(ThresholdSource::Derived) == "derived");
}

}  // namespace evictd::core::threshold_test
