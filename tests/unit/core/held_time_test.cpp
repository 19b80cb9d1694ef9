#include "core/held_time.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace evictd::core::held_time_test {

using namespace std::chrono_literals;

TEST_CASE("there is time where somebody is helped by it, and the floor is not reached") {
  constexpr HeldTime braked{.brake = 5s};
  CHECK(braked.is_there(50, 100, false));
  CHECK_FALSE(braked.is_there(49, 100, false));
  constexpr HeldTime hooked{.hooks = 2s};
  CHECK(hooked.is_there(50, 100, true));
  CHECK_FALSE(hooked.is_there(50, 100, false));
  CHECK_FALSE(HeldTime{}.is_there(100, 100, true));
}

TEST_CASE("the time is over once the pod's own is, and that of who has not answered") {
  constexpr Instant held{10s};
  constexpr HeldTime both{.brake = 1s, .hooks = 2s};
  CHECK_FALSE(both.is_over(held, held + 999ms, false));
  CHECK(both.is_over(held, held + 1s, false));
  CHECK_FALSE(both.is_over(held, held + 1s, true));
  CHECK(both.is_over(held, held + 2s, true));
  CHECK_FALSE(HeldTime{.brake = 5s, .hooks = 2s}.is_over(held, held + 2s, true));
}

}  // namespace evictd::core::held_time_test
