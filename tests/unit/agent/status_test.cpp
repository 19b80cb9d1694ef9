#include "agent/status.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>

#include "agent/loop.hpp"
#include "agent/runtime_watch.hpp"
#include "events/event_log.hpp"

namespace evictd::agent::status_test {
namespace {

/// The loop with what its status is made of beside.
struct Told {
  v1::NodeStatus status() {
    return describe_status({.synchronizer = loop.decider.synchronizer(),
                            .reports = loop.reports,
                            .evictions = loop.evictions,
                            .records = loop.records,
                            .usage = loop.usage,
                            .alarms = loop.alarms,
                            .recorder = recorder,
                            .runtime_watch = runtime_watch,
                            .runtime = loop.runtime,
                            .pods = loop.listed,
                            .catalog = loop.catalog,
                            .disk = disk},
                           loop.clock.now());
  }

  Loop loop;
  events::EventLog events{loop.reactor.get_executor()};
  Recorder recorder{events};
  node::NodeDisk disk{loop.reactor.get_executor(), loop.settings};
  RuntimeWatch runtime_watch{loop.reactor.get_executor(),
                             {.runtime = loop.runtime,
                              .reclaimer = loop.reclaimer,
                              .disk = disk,
                              .pods = loop.running,
                              .events = loop.events,
                              .alarms = loop.alarms,
                              .clock = loop.clock}};
};

const v1::SignalStatus& signal(const v1::NodeStatus& status, std::string_view name) {
  for (const auto& signal : status.signals())
    if (signal.signal() == name) return signal;
  FAIL(std::string(name), " is not told of");
  return v1::SignalStatus::default_instance();
}

bool pressed(const v1::NodeStatus& status) {
  for (const auto& condition : status.conditions())
    if (condition.type() == "MemoryPressure") return condition.status();
  return false;
}

}  // namespace

TEST_CASE("the status has the node as it is at the moment, with its thresholds") {
  Told told;
  told.loop.start();
  told.loop.observer.now = Loop::memory(3000);
  const auto status = told.status();
  const auto& memory = signal(status, "memory.available");
  CHECK(memory.available() == std::int64_t{3000} << 20);
  REQUIRE(memory.thresholds_size() == 1);
  CHECK(memory.thresholds(0).threshold().resolved() == 1 << 30);
  CHECK_FALSE(memory.thresholds(0).has_met_since());
  CHECK_FALSE(pressed(status));
  CHECK(status.passes() == 1);
  CHECK(status.runtime().endpoint() == "unix:///nowhere");
  CHECK_FALSE(status.runtime().connected());
  REQUIRE(status.wake_sources_size() == 1);
  CHECK(status.wake_sources(0).name() == "fake");
}

TEST_CASE("where the node cannot be read it is told of as the last pass saw it") {
  Told told;
  told.loop.start();
  told.loop.observer.broken = true;
  CHECK(signal(told.status(), "memory.available").available() == std::int64_t{4096} << 20);
}

TEST_CASE("the status names the evictions under way, and what they hold") {
  Told told;
  told.loop.start();
  told.loop.observer.now = Loop::memory(100);
  told.loop.wake();
  const auto status = told.status();
  CHECK(status.evictions() == 1);
  REQUIRE(status.in_flight_size() == 1);
  CHECK(status.in_flight(0).pod().uid() == "a");
  CHECK(status.in_flight(0).bytes() == std::int64_t{2} << 30);
  CHECK(pressed(status));
  CHECK(status.conditions(0).has_since());
}

}  // namespace evictd::agent::status_test
