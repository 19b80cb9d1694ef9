#include "core/saturating.hpp"

#include <doctest/doctest.h>

namespace evictd::core::saturating_test {

TEST_CASE("a sum beyond what can be counted is the largest or smallest number instead") {
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  constexpr auto min = std::numeric_limits<std::int64_t>::min();
  CHECK(saturating_add(2, 3) == 5);
  CHECK(saturating_add(max, -1) == max - 1);
  CHECK(saturating_add(max, min) == -1);
  CHECK(saturating_add(max, 1) == max);
  CHECK(saturating_add(1, max) == max);
  CHECK(saturating_add(min, -1) == min);
}

TEST_CASE("and so is a difference") {
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  constexpr auto min = std::numeric_limits<std::int64_t>::min();
  CHECK(saturating_subtract(2, 3) == -1);
  CHECK(saturating_subtract(-1, min) == max);
  CHECK(saturating_subtract(0, min) == max);
  CHECK(saturating_subtract(-2, max) == min);
}

}  // namespace evictd::core::saturating_test
