#include "agent/memory_history.hpp"

#include <doctest/doctest.h>

namespace evictd::agent::memory_history_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t mib = 1 << 20;

core::Instant at(core::Duration time) { return core::Instant{time}; }

node::NodeMemoryReading reading(std::int64_t available, std::int64_t reclaimable) {
  node::NodeMemoryReading result;
  result.observations[core::Signal::MemoryAvailable] = core::Observation{available, 1024 * mib, {}};
  result.node_level.reclaimable = reclaimable;
  return result;
}

}  // namespace

TEST_CASE("the fastest fall is kept, and what comes back is none") {
  MemoryHistory history;
  history.observed(reading(500 * mib, 0), at(0s));
  history.observed(reading(400 * mib, 0), at(1s));
  history.observed(reading(450 * mib, 0), at(1100ms));
  history.observed(reading(440 * mib, 0), at(1110ms));
  CHECK(history.evidence(at(10s), {}).peak_fill_rate == doctest::Approx(1000.0 * mib));
  CHECK(history.evidence(at(10s), {}).watched == 10s);
}

TEST_CASE("what was available within the last minute is kept by the second, and the newest reading always") {
  MemoryHistory history;
  CHECK(history.recent(at(0s)).empty());
  for (int half = 0; half <= 240; ++half) history.observed(reading(half * mib, 0), at(half * 500ms));
  auto recent = history.recent(at(120s));
  CHECK(recent.size() == 61);
  CHECK(recent.front() == MemorySample{at(60s), 120 * mib});
  CHECK(recent.back() == MemorySample{at(120s), 240 * mib});
  history.observed(reading(7 * mib, 0), at(120'500ms));
  recent = history.recent(at(120'500ms));
  CHECK(recent.back() == MemorySample{at(120'500ms), 7 * mib});
  CHECK(history.recent(at(300s)).empty());
}

TEST_CASE("readings that lie too close together make no rate of their own") {
  MemoryHistory history;
  history.observed(reading(500 * mib, 0), at(0s));
  history.observed(reading(490 * mib, 0), at(1ms));
  history.observed(reading(480 * mib, 0), at(10ms));
  CHECK(history.evidence(at(1s), {}).peak_fill_rate == doctest::Approx(2000.0 * mib));
}

TEST_CASE("a release tells the time, how far memory fell, and how much of it was cache") {
  MemoryHistory history;
  history.observed(reading(300 * mib, 30 * mib), at(0s));
  history.observed(reading(80 * mib, 20 * mib), at(1s));
  history.observed(reading(200 * mib, 50 * mib), at(2s));
  history.released(25ms, 100 * mib);
  history.observed(reading(95 * mib, 95 * mib), at(3s));
  history.released(15ms, 100 * mib);
  const auto evidence = history.evidence(at(4s), {});
  CHECK(evidence.crossings == 2);
  CHECK(evidence.release_time == 25ms);
  CHECK(evidence.overshoot == 20 * mib);
  CHECK(evidence.reclaimable_share == doctest::Approx(1.0));
}

}  // namespace evictd::agent::memory_history_test
