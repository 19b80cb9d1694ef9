#include "core/grace_period.hpp"

#include <doctest/doctest.h>

#include <limits>

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

}  // namespace evictd::core::grace_period_test
