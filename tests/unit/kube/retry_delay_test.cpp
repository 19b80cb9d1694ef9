#include "kube/retry_delay.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace evictd::kube::retry_delay_test {

namespace kube = evictd::kube;
namespace core = evictd::core;
using namespace std::chrono_literals;

namespace {

constexpr kube::RetryLimits limits{.first = 1s, .longest = 10s, .lasting = 10s, .longest_demanded = 60s};

kube::Random always(double value) {
  return [value] { return value; };
}

core::Instant at(core::Duration time) { return core::Instant{} + time; }

}  // namespace

TEST_CASE("the bound doubles from failure to failure, up to the longest") {
  kube::RetryDelay delay{limits, always(0.5)};
  std::vector<core::Duration> delays;
  for (int i = 0; i < 7; ++i) delays.push_back(delay.failed(at(0s)));
  CHECK(delays == std::vector<core::Duration>{500ms, 1s, 2s, 4s, 5s, 5s, 5s});
  CHECK(delay.failures() == 7);
}

TEST_CASE("the delay lies anywhere between nothing and the bound") {
  CHECK(kube::RetryDelay{limits, always(0)}.failed(at(0s)) == 0s);
  CHECK(kube::RetryDelay{limits, always(0.999)}.failed(at(0s)) == 999ms);
  kube::RetryDelay delay{{.first = 1s, .longest = 1s}};
  std::vector<core::Duration> delays(2000);
  std::ranges::generate(delays, [&] { return delay.failed(at(0s)); });
  for (auto tenth = 0ms; tenth < 1s; tenth += 100ms) {
    const auto count = std::ranges::count_if(delays, [&](auto d) { return d >= tenth && d < tenth + 100ms; });
    CHECK(count > 100);  // 200 are expected; fewer than half of that once in 10^17 runs
  }
  CHECK(std::ranges::all_of(delays, [](auto d) { return d >= 0s && d < 1s; }));
}

TEST_CASE("what the server demands is waited for, and the jitter comes on top") {
  kube::RetryDelay delay{limits, always(0.5)};
  CHECK(delay.failed(at(0s), 7s) == 7500ms);
  CHECK(delay.failed(at(0s), 0s) == 1s);
  CHECK(delay.failed(at(0s), -5s) == 2s);
  CHECK(delay.failed(at(0s), 10h) == 64s);
}

TEST_CASE("success counts only once it has lasted") {
  kube::RetryDelay delay{limits, always(0.5)};
  CHECK(delay.failed(at(0s)) == 500ms);
  CHECK(delay.failed(at(1s)) == 1s);
  delay.succeeded(at(2s));
  delay.succeeded(at(11s));
  CHECK(delay.failed(at(11s)) == 2s);  // nine seconds
  delay.succeeded(at(12s));
  CHECK(delay.failed(at(22s)) == 500ms);
  CHECK(delay.failures() == 1);
  CHECK(delay.failed(at(50s)) == 1s);  // failing for long is no success
}

}  // namespace evictd::kube::retry_delay_test
