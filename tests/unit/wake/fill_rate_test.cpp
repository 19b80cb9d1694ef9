#include "wake/fill_rate.hpp"

#include <doctest/doctest.h>

namespace evictd::wake::fill_rate_test {

TEST_CASE("the rate at which memory can be taken is within what is believed") {
  const double rate = evictd::wake::measure_fill_rate();
  CHECK(rate >= 2.0 * (1 << 30));
  CHECK(rate <= 64.0 * (1 << 30));
}

}  // namespace evictd::wake::fill_rate_test
