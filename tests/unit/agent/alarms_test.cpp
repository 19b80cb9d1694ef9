#include "agent/alarms.hpp"

#include <doctest/doctest.h>

#include "agent/loop.hpp"

namespace evictd::agent::alarms_test {
namespace {

using enum core::Signal;
using fixture::observed;
using fixture::operator""_GiB;

/// A reading of a node of 8 GiB whose cgroup holds 5 GiB, 1 GiB of which the kernel takes back first.
node::NodeMemoryReading reading() {
  node::NodeMemoryReading reading;
  reading.observations = observed({{MemoryAvailable, 4_GiB, 8_GiB}, {PidAvailable, 100, 1000}});
  reading.node_level = {.capacity = 8_GiB, .usage = 5_GiB, .reclaimable = 1_GiB, .incarnation = 7};
  return reading;
}

wake::Arming armed(const std::vector<core::Level>& levels, bool releasing = false) {
  Loop loop;
  loop.alarms.arm(levels, reading(), {.releasing = releasing}, loop.clock.now());
  return loop.wake_source->armed.back();
}

}  // namespace

TEST_CASE("a memory level is where it lies on the cgroup's usage counter") {
  const auto arming = armed({{MemoryAvailable, 2_GiB, true}});
  REQUIRE(arming.levels.size() == 1);
  REQUIRE(arming.levels.front().usage);
  CHECK(arming.levels.front().usage->bytes == 7_GiB);
  CHECK(arming.levels.front().usage->without_reclaimable == 6_GiB);
  CHECK(arming.levels.front().usage->current == 5_GiB);
  CHECK(arming.levels.front().usage->incarnation == 7);
}

TEST_CASE("levels of other signals have no counter, and those of signals without an observation are left out") {
  const auto arming = armed({{PidAvailable, 50, true}, {NodefsAvailable, 1_GiB, true}});
  REQUIRE(arming.levels.size() == 1);
  CHECK(arming.levels.front().signal == PidAvailable);
  CHECK(arming.levels.front().available == 100);
  CHECK_FALSE(arming.levels.front().usage);
}

TEST_CASE("the pods' level lies on the pods' counter, as long as there is one") {
  auto with_pods = reading();
  with_pods.observations[AllocatableMemoryAvailable] = core::Observation{.available = 1_GiB, .capacity = 4_GiB};
  const std::vector<core::Level> levels{{AllocatableMemoryAvailable, 1_GiB, true}};
  Loop loop;
  loop.alarms.arm(levels, with_pods, {}, loop.clock.now());
  CHECK_FALSE(loop.wake_source->armed.back().levels.front().usage);
  with_pods.pods_level = node::MemoryLevelInput{.capacity = 4_GiB, .usage = 3_GiB};
  loop.alarms.arm(levels, with_pods, {}, loop.clock.now());
  CHECK(loop.wake_source->armed.back().levels.front().usage->bytes == 3_GiB);
}

TEST_CASE("what is watched stays armed by the levels of the last reading") {
  Loop loop;
  loop.alarms.arm(std::vector<core::Level>{{MemoryAvailable, 2_GiB, true}}, reading(), {.releasing = true},
                  loop.clock.now());
  loop.alarms.watch_images("/images");
  CHECK(loop.alarms.watches_images());
  const auto pods = std::make_shared<wake::WatchedPods>();
  loop.alarms.watch_files(pods);
  const auto& arming = loop.wake_source->armed.back();
  CHECK(arming.images == "/images");
  CHECK(arming.watched == pods);
  CHECK(arming.levels.size() == 1);
  CHECK(arming.releasing);
}

TEST_CASE("only a crossing that nothing but the fallback timer saw was missed") {
  Loop loop;
  auto wake = loop.reason(core::WakeSource::Timer);
  loop.alarms.crossed(wake);
  wake.reasons.push_back({core::WakeSource::Psi, "", loop.clock.now()});
  loop.alarms.crossed(wake);
  CHECK(loop.fallback.status().front().detail == "1 crossings missed by every notifier");
}

TEST_CASE("what is wrong with a source is recorded, also what was before anybody listened") {
  Loop loop;
  loop.wakes.degraded("psi", {"it cannot be armed"});
  loop.alarms.report_to(loop.log);
  CHECK(loop.steps == Steps{"psi degraded"});
  loop.wakes.recovered("psi", "it was armed anew");
  CHECK(loop.steps.back() == "psi recovered");
}

}  // namespace evictd::agent::alarms_test
