#include "agent/describe_eviction.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>

#include "fixture/node.hpp"
#include "fixture/pods.hpp"

namespace evictd::agent::describe_eviction_test {
namespace {

using namespace std::chrono_literals;
using enum core::Signal;

core::Turn woken() {
  return {.wake = {.time = core::Instant{1s},
                   .reasons = {{core::WakeSource::Memcg, "300Mi", core::Instant{1s}},
                               {core::WakeSource::Stop, "", core::Instant{1s}}}}};
}

evict::EvictionRecord record() {
  evict::EvictionRecord record;
  record.pod = std::make_shared<core::Pod>(fixture::pod("bloat"));
  record.cause = MemoryAvailable;
  record.id = 7;
  record.turn = woken();
  return record;
}

}  // namespace

TEST_CASE("an event tells what woke evictd, and the stages that were reached") {
  auto turn = woken();
  turn.reach(core::Stage::Observed, turn.wake.time + 70us);
  const auto event = new_event(v1::Event::CONDITION_CHANGED, turn);
  CHECK(event.kind() == v1::Event::CONDITION_CHANGED);
  CHECK(event.wake().source() == "memcg");
  REQUIRE(event.wake().reasons_size() == 2);
  CHECK(event.wake().reasons(0) == "memcg: 300Mi");
  CHECK(event.wake().reasons(1) == "stop");
  CHECK(event.wake().monotonic_ns() == 1'000'000'000);
  CHECK(event.stages().size() == 1);
  CHECK(event.stages().at("observed") == 70);
}

TEST_CASE("an event of an eviction tells which it is, and of which pod") {
  const auto event = new_event(v1::Event::CONTAINERS_KILLED, record());
  CHECK(event.eviction_id() == 7);
  CHECK(event.pod().name() == "bloat");
  CHECK(event.signal() == "memory.available");
}

TEST_CASE("a crossing tells of its threshold and of what was available") {
  const auto event = describe_crossing({.threshold = fixture::threshold(MemoryAvailable, "1Gi"),
                                        .observation = {.available = 1 << 20, .capacity = 2 << 20}},
                                       woken());
  CHECK(event.kind() == v1::Event::THRESHOLD_CROSSED);
  CHECK(event.message() == "memory.available<1Gi: 1.0 MiB available");
  CHECK(event.threshold_crossed().threshold().resolved() == 1 << 30);
  CHECK(event.threshold_crossed().observation().available() == 1 << 20);
}

}  // namespace evictd::agent::describe_eviction_test
