#include "core/eviction_reason.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "fixture/node.hpp"
#include "fixture/pods.hpp"

namespace evictd::core::eviction_reason_test {
namespace {

using fixture::pod;
using fixture::with_priority;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

RankedPod ranked(Pod pod, std::int64_t usage, std::int64_t request = 0) {
  return {.pod = std::make_shared<const Pod>(std::move(pod)), .usage = usage, .request = request};
}

/// memory.available<1Gi; the first of these goes.
Eviction eviction(std::vector<RankedPod> ranking, std::int64_t available) {
  Eviction result;
  result.pod = ranking.front().pod;
  result.cause = Signal::MemoryAvailable;
  result.acted = Acted{fixture::threshold(Signal::MemoryAvailable, "1Gi"), {.available = available, .capacity = 8_GiB}};
  result.ranking = std::move(ranking);
  return result;
}

}  // namespace

TEST_CASE("what would have saved a pod is the smallest request, the largest limit and the highest threshold") {
  const auto evicted =
      eviction({ranked(pod("hog"), 600_MiB, 100_MiB), ranked(pod("meek"), 200_MiB, 100_MiB)}, 1_GiB - 50_MiB);
  const auto reason = reason_for(evicted);
  REQUIRE(reason);
  CHECK(reason->victim == &evicted.ranking[0]);
  CHECK(reason->next == &evicted.ranking[1]);
  CHECK(reason->rule == RankingRule::FurtherOver);
  CHECK(reason->request == 501_MiB);
  CHECK(reason->next_is_enough);
  CHECK(reason->limit == 550_MiB);
  CHECK(reason->threshold == 974_MiB);
}

TEST_CASE("a next pod that holds less than what is missing would have saved nobody") {
  const auto evicted = eviction({ranked(pod("hog"), 600_MiB), ranked(pod("meek"), 20_MiB)}, 1_GiB - 50_MiB);
  const auto reason = reason_for(evicted);
  REQUIRE(reason);
  CHECK(reason->request == 581_MiB);
  CHECK_FALSE(reason->next_is_enough);
}

TEST_CASE("pods that never go are not next, and where nothing is available no threshold would have helped") {
  const auto evicted =
      eviction({ranked(pod("hog"), 600_MiB), ranked(with_priority(pod("vital"), system_critical_priority), 1_GiB)}, 0);
  const auto reason = reason_for(evicted);
  REQUIRE(reason);
  CHECK(reason->next == nullptr);
  CHECK_FALSE(reason->request);
  CHECK_FALSE(reason->limit);
  CHECK_FALSE(reason->threshold);
}

TEST_CASE("there is no reason where no threshold acted, or the pod is not in the ranking") {
  auto without = eviction({ranked(pod("hog"), 600_MiB)}, 0);
  without.acted.reset();
  CHECK_FALSE(reason_for(without));
  auto other = eviction({ranked(pod("hog"), 600_MiB)}, 0);
  other.pod = std::make_shared<const Pod>(pod("another"));
  CHECK_FALSE(reason_for(other));
}

TEST_CASE("every rule has a name of its own") {
  using enum RankingRule;
  std::vector<std::string_view> names;
  for (const auto rule : {None, NoStats, Exceeds, Priority, FurtherOver, NearerToIt, NotByNumbers}) {
    CHECK_FALSE(name(rule).empty());
    CHECK(std::ranges::find(names, name(rule)) == names.end());
    names.push_back(name(rule));
  }
}

}  // namespace evictd::core::eviction_reason_test
