#include "agent/fill_rates.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::agent::fill_rates_test {
namespace {

using namespace std::chrono_literals;
using enum core::Signal;
using fixture::operator""_MiB;

core::Observations with(core::Signal signal, std::int64_t available) {
  core::Observations observations;
  observations[signal] = core::Observation{.available = available, .capacity = 1024_MiB};
  return observations;
}

core::Instant at(core::Duration time) { return core::Instant{time}; }

}  // namespace

TEST_CASE("a rate is unknown at first, and where a signal is not measured") {
  FillRates rates;
  CHECK_FALSE(rates.rate(MemoryAvailable).has_value());
  rates.observe(with(MemoryAvailable, 500_MiB), at(0s));
  CHECK_FALSE(rates.rate(MemoryAvailable).has_value());
  rates.observe(with(MemoryAvailable, 400_MiB), at(100ms));  // a tenth of a second says nothing
  CHECK_FALSE(rates.rate(MemoryAvailable).has_value());
  rates.observe(with(MemoryAvailable, 400_MiB), at(1s));
  CHECK(rates.rate(MemoryAvailable).has_value());
  CHECK_FALSE(rates.rate(PidAvailable).has_value());
  rates.observe({}, at(2s));
  CHECK_FALSE(rates.rate(MemoryAvailable).has_value());
}

TEST_CASE("it is what changed in the last seconds, less where more is available") {
  FillRates rates;
  for (int i = 0; i <= 20; ++i) rates.observe(with(MemoryAvailable, 1000_MiB - i * 10_MiB), at(i * 1s));
  CHECK(*rates.rate(MemoryAvailable) == doctest::Approx(10.0 * 1_MiB));
  for (int i = 21; i <= 30; ++i) rates.observe(with(MemoryAvailable, 800_MiB + (i - 20) * 5_MiB), at(i * 1s));
  CHECK(*rates.rate(MemoryAvailable) == doctest::Approx(-5.0 * 1_MiB));
}

TEST_CASE("a steady growth is known within five seconds, however often somebody looks") {
  for (const core::Duration spacing : {core::Duration(1ms), core::Duration(30ms), core::Duration(700ms)}) {
    CAPTURE(spacing.count());
    FillRates rates;
    core::Duration time{};
    for (; time < 10s; time += spacing) rates.observe(with(MemoryAvailable, 900_MiB), at(time));
    const auto begin = time;
    for (; time < begin + 6s; time += spacing)
      rates.observe(with(MemoryAvailable, 900_MiB - (time - begin) / 1ms * 100), at(time));
    CHECK(*rates.rate(MemoryAvailable) == doctest::Approx(100'000).epsilon(0.05));
  }
}

TEST_CASE(
    "where only the timer looks its interval is what there is; what is older than half a minute counts for nothing") {
  FillRates rates;
  rates.observe(with(NodefsAvailable, 500_MiB), at(0s));
  rates.observe(with(NodefsAvailable, 400_MiB), at(10s));
  rates.observe(with(NodefsAvailable, 200_MiB), at(20s));
  CHECK(*rates.rate(NodefsAvailable) == doctest::Approx(20.0 * 1_MiB));
  rates.observe(with(NodefsAvailable, 100_MiB), at(5min));
  CHECK_FALSE(rates.rate(NodefsAvailable).has_value());
  rates.observe(with(NodefsAvailable, 99_MiB), at(5min + 1s));
  CHECK(*rates.rate(NodefsAvailable) == doctest::Approx(1.0 * 1_MiB));
}

}  // namespace evictd::agent::fill_rates_test
