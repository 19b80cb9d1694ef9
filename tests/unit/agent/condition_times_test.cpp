#include "agent/condition_times.hpp"

#include <doctest/doctest.h>
#include <state.pb.h>

#include <chrono>

namespace evictd::agent::condition_times_test {
namespace {

using namespace std::chrono_literals;
using enum core::NodeCondition;

const core::Instant begin{1h};

}  // namespace

TEST_CASE("a condition is so since it changed last, whatever the others do") {
  ConditionTimes times;
  CHECK_FALSE(times.since(MemoryPressure));
  times.change({MemoryPressure}, begin);
  times.change({MemoryPressure, DiskPressure}, begin + 1s);
  times.change({DiskPressure}, begin + 2s);
  CHECK(times.since(MemoryPressure) == begin + 2s);
  CHECK(times.since(DiskPressure) == begin + 1s);
  CHECK_FALSE(times.since(PidPressure));
}

TEST_CASE("since when conditions hold outlives a restart") {
  ConditionTimes first;
  first.change({MemoryPressure}, begin);
  state::v1::AgentState left;
  first.add_to(left);
  ConditionTimes second;
  second.restore(left, {MemoryPressure});
  second.change({MemoryPressure, DiskPressure}, begin + 1min);
  CHECK(second.since(MemoryPressure) == begin);
}

}  // namespace evictd::agent::condition_times_test
