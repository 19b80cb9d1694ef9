#include "agent/listing_first.hpp"

#include <doctest/doctest.h>

namespace evictd::agent::listing_first_test {
namespace {

using namespace std::chrono_literals;
using enum ListingFirst::Answer;

constexpr core::Instant at(core::Duration time) { return core::Instant{time}; }

}  // namespace

TEST_CASE("a list is waited for where a cgroup that is nobody's holds more than the victim, until it is there") {
  ListingFirst first;
  CHECK(first.ask({.stray = 100, .victim = 100, .available = 50}, at(0s)) == go_on);
  CHECK(first.ask({.stray = 101, .victim = 100, .available = 50}, at(0s)) == list);
  CHECK(first.is_waiting());
  CHECK(first.ask({.stray = 101, .victim = 100, .available = 50}, at(100ms)) == wait);
  CHECK_FALSE(first.listed(at(-1ms)));  // it was asked for before
  CHECK(first.listed(at(1ms)));
  CHECK_FALSE(first.listed(at(1ms)));
  CHECK(first.ask({.stray = 101, .victim = 100, .available = 50}, at(110ms)) == go_on);
}

TEST_CASE("a runtime that does not answer delays one eviction for a moment, and no other for a while") {
  ListingFirst first;
  CHECK(first.ask({.stray = 2, .victim = 1, .available = 50}, at(0s)) == list);
  CHECK(first.ask({.stray = 2, .victim = 1, .available = 50}, at(ListingFirst::patience)) == go_on);
  CHECK_FALSE(first.is_waiting());
  CHECK(first.ask({.stray = 2, .victim = 1, .available = 50}, at(ListingFirst::patience + 1ms)) == go_on);
  CHECK(first.ask({.stray = 2, .victim = 1, .available = 50}, at(ListingFirst::pause)) == list);
}

TEST_CASE("nothing is waited for while the node runs out of memory") {
  ListingFirst first;
  CHECK(first.ask({.stray = 2, .victim = 1, .available = 50}, at(0s)) == list);
  CHECK(first.ask({.stray = 2, .victim = 1, .available = 26}, at(10ms)) == wait);
  CHECK(first.ask({.stray = 2, .victim = 1, .available = 25}, at(20ms)) == go_on);
}

}  // namespace evictd::agent::listing_first_test
