#include "core/observation.hpp"

#include <doctest/doctest.h>

namespace evictd::core::observation_test {

TEST_CASE("a signal has no observation until it is given one") {
  Observations observations;
  for (const auto signal : all_signals()) CHECK_FALSE(observations[signal].has_value());
  observations[Signal::PidAvailable] = Observation{.available = 5, .capacity = 10};
  for (const auto signal : all_signals()) CHECK(observations[signal].has_value() == (signal == Signal::PidAvailable));
  CHECK(observations[Signal::PidAvailable]->available == 5);
  CHECK_FALSE(observations[Signal::PidAvailable]->time.has_value());
}

}  // namespace evictd::core::observation_test
