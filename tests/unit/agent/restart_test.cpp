#include "agent/restart.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "agent/loop.hpp"
#include "events/event_log.hpp"
#include "fixture/pods.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "state/found_state.hpp"

namespace evictd::agent::restart_test {
namespace {

using namespace std::chrono_literals;

/// An evictd with a state file: it goes on where the one before it ended.
struct Restarted {
  explicit Restarted(const std::filesystem::path& directory)
      : found{state::FoundState::read((directory / "state").native(), {})}, live{found.live_thresholds()} {
    restore(found.state, survivors(), loop.cgroups, loop.log, 30s, loop.clock.now());
    state.emplace(std::move(found), RestartState::Parts{.agent = survivors(), .live = live, .events = events});
  }
  Survivors survivors() { return {.decider = loop.decider, .evictions = loop.records, .conditions = loop.conditions}; }

  Loop loop;
  events::EventLog events{loop.reactor.get_executor()};
  state::FoundState found;
  core::ThresholdOverlay live;
  std::optional<RestartState> state;
};

}  // namespace

TEST_CASE("an evictd goes on where the one before it ended") {
  const fixture::Tree tree{fixture::dir("run")};
  {
    Restarted first{tree.path("run")};
    first.loop.start();
    first.loop.observer.now = Loop::memory(100);
    first.loop.wake();
    REQUIRE(first.loop.records.contains("a"));
    first.live.hard["memory.available"] = "2Gi";
    first.state->save();
  }
  Restarted second{tree.path("run")};
  CHECK(second.loop.decider.synchronizer().conditions().contains(core::NodeCondition::MemoryPressure));
  CHECK(second.loop.conditions.since(core::NodeCondition::MemoryPressure));
  CHECK(second.loop.records.contains("a"));
  CHECK(second.live.hard.contains("memory.available"));

  // Whatever it does not change it leaves to the next one.
  Restarted third{tree.path("run")};
  CHECK(third.loop.records.contains("a"));
  CHECK(third.live.hard.contains("memory.available"));
}

TEST_CASE("what is rehearsed is not saved") {
  const fixture::Tree tree{fixture::dir("run")};
  {
    Restarted first{tree.path("run")};
    first.loop.start();
    evict::EvictionRecord record;
    record.pod = std::make_shared<core::Pod>(fixture::pod("a"));
    record.begun = first.loop.clock.now();
    first.state->rehearse(record);
  }
  const Restarted second{tree.path("run")};
  CHECK_FALSE(second.loop.records.contains("a"));
}

TEST_CASE("an eviction that began too long ago is left alone, and told as failed") {
  const fixture::Tree tree{fixture::dir("run")};
  {
    Restarted first{tree.path("run")};
    first.loop.start();
    first.loop.observer.now = Loop::memory(100);
    first.loop.wake();
    first.state->save();
  }
  auto found = state::FoundState::read((tree.path("run") / "state").native(), {});
  Loop later;
  later.steps.clear();
  restore(found.state, {.decider = later.decider, .evictions = later.records, .conditions = later.conditions},
          later.cgroups, later.log, 30s, later.clock.now() + 1h);
  CHECK(later.steps == Steps{"failed a"});
  CHECK_FALSE(later.records.contains("a"));
  CHECK(later.decider.synchronizer().state().in_flight.empty());
}

TEST_CASE("after a long absence what was short before it is not taken to have been so all the time") {
  const fixture::Tree tree{fixture::dir("run")};
  core::Instant end;
  {
    Restarted first{tree.path("run")};
    first.loop.start();
    first.loop.observer.now = Loop::memory(100);
    first.loop.wake();
    first.state->save();
    end = first.loop.clock.now();
  }
  for (const auto& [absence, known] : {std::pair{4min, 1UZ}, std::pair{6min, 0UZ}}) {
    CAPTURE(absence.count());
    auto found = state::FoundState::read((tree.path("run") / "state").native(), {});
    Loop later;
    restore(found.state, {.decider = later.decider, .evictions = later.records, .conditions = later.conditions},
            later.cgroups, later.log, 30s, end + absence);
    const auto pressure = later.decider.synchronizer().state().pressure;
    CHECK(pressure.met.size() == known);
    CHECK(pressure.acting.size() == known);
  }
}

TEST_CASE("the disks' layout of an earlier evictd holds only until they are known to lie otherwise") {
  constexpr core::FilesystemLayout shared;
  constexpr core::FilesystemLayout dedicated{.dedicated_imagefs = true};
  for (const auto& [before, now] : {std::pair{dedicated, shared}, std::pair{shared, dedicated}}) {
    CAPTURE(before.dedicated_imagefs);
    const fixture::Tree tree{fixture::dir("run")};
    {
      Restarted first{tree.path("run")};
      first.loop.observer.layout_now = before;
      first.loop.start();
      first.state->save();
    }
    Restarted second{tree.path("run")};
    const auto layout = [&] { return second.loop.decider.synchronizer().state().layout; };
    second.loop.start();
    CHECK(layout() == before);
    second.loop.observer.layout_now = now;
    second.loop.wake();
    CHECK(layout() == now);
  }
}

TEST_CASE("without a file nothing is found, and nothing is saved") {
  auto found = state::FoundState::read("", {});
  CHECK_FALSE(found.file);
  CHECK(found.events().events.empty());
  CHECK(found.live_thresholds().empty());
}

}  // namespace evictd::agent::restart_test
