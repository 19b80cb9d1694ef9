#include "evict/paced_look.hpp"

#include <doctest/doctest.h>

namespace evictd::evict::paced_look_test {

using namespace std::chrono_literals;

TEST_CASE("a look that is dear is the last for a while, and one that costs nothing keeps none waiting") {
  constexpr core::Instant begin{1h};
  CHECK(earliest_next_look(begin, begin + 20ms) == begin + 420ms);
  CHECK(earliest_next_look(begin, begin + 5us) == begin + 105us);
  CHECK(earliest_next_look(begin, begin) == begin);
}

TEST_CASE("looks one after the other take a twentieth of the time at most, however long each of them takes") {
  constexpr core::Instant begin{};
  core::Duration looking{};
  auto time = begin;
  for (const core::Duration cost : {20ms, 1ms, 300ms, 7ms}) {
    looking += cost;
    time = earliest_next_look(time, time + cost);
  }
  CHECK(looking * 20 <= time - begin);
}

}  // namespace evictd::evict::paced_look_test
