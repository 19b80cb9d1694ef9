#include "agent/list_pace.hpp"

#include <doctest/doctest.h>

namespace evictd::agent::list_pace_test {

using namespace std::chrono_literals;

TEST_CASE("the clock has pods listed the more seldom the better what happens to them is told") {
  const ListPace pace;
  CHECK(pace.by_clock({.all = true}) == 10s);
  CHECK(pace.by_clock({.all = true, .cgroups_watched = true}) == 30s);
  CHECK(pace.by_clock({.all = true, .runtime_heard = true}) == 1min);
  CHECK(pace.by_clock({.all = true, .runtime_heard = true, .cgroups_watched = true}) == 1min);
}

TEST_CASE("what a list could not have is asked for again, whoever tells of what comes") {
  const ListPace pace;
  CHECK(pace.by_clock({}) == ListPace::usual);
  CHECK(pace.by_clock({.runtime_heard = true, .cgroups_watched = true}) == ListPace::usual);
}

TEST_CASE("the runtime's word has pods listed at once, but twenty times at most, and then ten times a second") {
  ListPace pace;
  const core::Instant now{1h};
  for (int list = 0; list < 20; ++list) {
    REQUIRE(pace.next(now) == now);
    pace.begun(now);
  }
  CHECK(pace.next(now) == now + 100ms);
  CHECK(pace.next(now + 100ms) == now + 100ms);
  pace.begun(now + 100ms);
  CHECK(pace.next(now + 100ms) == now + 200ms);
}

}  // namespace evictd::agent::list_pace_test
