#include "core/grace_period.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <utility>

#include "fixture/pods.hpp"

namespace evictd::core::grace_period_test {

using namespace evictd::core;
using namespace std::chrono_literals;

TEST_CASE("a pod's own grace period is what it says, and no number that a pod can write is more than time can hold") {
  auto pod = evictd::fixture::pod("a");
  CHECK_FALSE(own_grace_period(pod));
  pod.termination_grace_period_seconds = 0;
  CHECK(own_grace_period(pod) == 0s);
  pod.termination_grace_period_seconds = 45;
  CHECK(own_grace_period(pod) == 45s);
  pod.termination_grace_period_seconds = -1;
  CHECK(own_grace_period(pod) == 0s);
  pod.termination_grace_period_seconds = std::numeric_limits<std::int64_t>::max();
  const auto longest = own_grace_period(pod).value();
  CHECK(longest > 24h * 365 * 30);
  CHECK(Instant::clock::now() + longest + longest > Instant::clock::now());
  pod.termination_grace_period_seconds = std::numeric_limits<std::int64_t>::min();
  CHECK(own_grace_period(pod) == 0s);
}

TEST_CASE("a pod that may take its own time has a second at least, and 30 where it says nothing") {
  auto pod = evictd::fixture::pod("a");
  CHECK(grace_period_of(pod) == 30s);
  for (const auto& [own, given] : {std::pair{45, 45s}, {1, 1s}, {0, 1s}, {-1, 1s}}) {
    pod.termination_grace_period_seconds = own;
    CHECK(grace_period_of(pod) == given);
  }
}

TEST_CASE("a container has two seconds to end in wherever its pod has any time, and none where it has none") {
  CHECK(stop_time(0s) == 0s);
  CHECK(stop_time(1ms) == 2s);
  CHECK(stop_time(least_grace_period) == 2s);
  CHECK(stop_time(3s) == 3s);
  CHECK(stop_time(30s, 10s) == 20s);
  CHECK(stop_time(30s, 29s) == 2s);
  CHECK(stop_time(30s, 31s) == 2s);
  CHECK(stop_time(0s, 1s) == 0s);
}

TEST_CASE("the end of a pod is waited for half as long again as it has, for 10 s at least, and never beyond time") {
  CHECK(kill_timeout(1s) == 10s);
  CHECK(kill_timeout(30s) == 45s);
  auto pod = evictd::fixture::pod("a");
  pod.termination_grace_period_seconds = std::numeric_limits<std::int64_t>::max();
  CHECK(Instant::clock::now() + kill_timeout(grace_period_of(pod)) > Instant::clock::now());
}

}  // namespace evictd::core::grace_period_test
