#include "agent/describe_given_time.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace evictd::agent::describe_given_time_test {

using namespace std::chrono_literals;
using evict::Braked;

TEST_CASE("what became of a pod that was held is said in a line") {
  CHECK(describe(Braked{.limit = 312 << 20, .usage = 280 << 20, .given = 5s}) == "held at 312.0 MiB, given 5s to end");
  CHECK(describe(Braked{.phase = Braked::Phase::ended, .duration = 1200ms}) == "ended by itself after 1.2 s");
  CHECK(describe(Braked{.phase = Braked::Phase::killed, .duration = 5s}) == "killed after 5.0 s");
  CHECK(describe(Braked{.phase = Braked::Phase::killed, .duration = 400ms, .why = "it did nothing"}) ==
        "killed after 0.4 s: it did nothing");
}

TEST_CASE("and in the event's detail") {
  const auto held = describe_braked({.limit = 312 << 20, .usage = 280 << 20, .given = 5s});
  CHECK(held.phase() == "held");
  CHECK(held.limit_bytes() == 312 << 20);
  CHECK(held.usage_bytes() == 280 << 20);
  CHECK(held.duration().seconds() == 5);
  const auto killed = describe_braked({.phase = Braked::Phase::killed, .given = 5s, .duration = 1s, .why = "so"});
  CHECK(killed.phase() == "killed");
  CHECK(killed.why() == "so");
  CHECK(killed.duration().seconds() == 1);
}

TEST_CASE("what others answered is bounded, and safe to print") {
  evict::HooksAsked asked{{{.hook = "dump", .outcome = "done", .took = 400ms}, {.hook = "x\n", .outcome = "late"}}};
  CHECK(describe(asked) == "asked before the kill: dump done after 0.4 s, x\\n late after 0.0 s");
  CHECK(describe(evict::HooksAsked{}) == "asked before the kill: nobody answered");
  asked.answers.assign(100, {.hook = std::string(10'000, 'h'), .outcome = std::string(10'000, '\x1b')});
  const auto message = describe_asked(asked);
  CHECK(message.answers_size() == 64);
  CHECK(message.answers(0).hook().size() <= 256);
  CHECK(message.answers(0).outcome().size() <= 256);
  CHECK(describe(asked).ends_with(", and 92 more"));
}

}  // namespace evictd::agent::describe_given_time_test
