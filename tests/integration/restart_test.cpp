#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "history.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::restart_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

// What becomes of an eviction when evictd dies in the middle of it. The crash points are those of the real program's
// code; the program that dies at them differs from evictd only in that.

namespace {

constexpr int killed_status = 128 + SIGKILL;

testbed::RunningPod run_pod(Testbed& testbed, const std::string& name, std::vector<std::string> load,
                            std::optional<int> priority = {}) {
  return testbed.cri().run_pod(integration::pod(name, QosClass::BestEffort, std::move(load), priority));
}

Agent::Options options() { return {.thresholds = "evictionHard: {memory.available: 300Mi}", .keep_history = true}; }

/// evictd that dies at the crash point.
Agent::Options crashing(const std::string& point) {
  auto result = options();
  result.environment = {"EVICTD_CRASH_AT=" + point};
  result.program = testbed::crashing_evictd();
  return result;
}

void wait_until_gone(Testbed& testbed, const Agent& agent, const testbed::RunningPod& pod) {
  testbed::wait_until("the pod is gone, and nothing under way", 60s,
                      [&] { return !has_processes(testbed, pod) && agent.status().in_flight().empty(); });
}

}  // namespace

TEST_CASE("evictd is killed at every stage of an eviction, and the next one finishes it, once and nobody else's") {
  for (const std::string point : {"intended", "kept", "signalled", "killed-unsaved", "killed", "released-unsaved",
                                  "released", "gone", "cleaned-unsaved", "finished"}) {
    CAPTURE(point);
    Testbed testbed{gibi_node};
    const auto chill = run_pod(testbed, "chill", {"hold", "100Mi"});
    const auto vital = run_pod(testbed, "vital", {"hold", "200Mi"}, 2'000'000'000);
    const Follower hog{testbed, "hog"};
    {
      Agent agent{testbed, crashing(point)};
      agent.wait_for_pods(3);  // one that the runtime has not listed yet would be evicted by its cgroup's name
      hog.hold(500 * mebi);
      REQUIRE(agent.process().wait(60s) == killed_status);
    }
    // Before the first signal the pod must live, after it it must not.
    if (point == "intended" || point == "kept") CHECK(has_processes(testbed, hog.running));

    Agent agent{testbed, options()};
    wait_until_gone(testbed, agent, hog.running);
    CHECK(testbed.cri().is_running(chill));
    CHECK(testbed.cri().is_running(vital));
    CHECK(agent.status().evictions() <= 1);
    const auto events = history(agent);
    for (const auto kind :
         {Event::EVICTION_INTENDED, Event::CONTAINERS_KILLED, Event::MEMORY_RELEASED, Event::CLEANUP_DONE}) {
      CAPTURE(Event::Kind_Name(kind));
      CHECK(count(events, kind, "default/hog") == 1);
    }
    for (std::size_t i = 0; i < events.size(); ++i) CHECK(events[i].sequence() == i + 1);
    CHECK(count(events, Event::GAP, "/") == 0);
    if (point != "intended" && point != "finished") {
      CHECK(agent.status().evictions() == 0);  // it decided nothing of its own
      agent.process().wait_until_says("default/hog: its eviction was begun by an earlier evictd");
    }
    for (const auto& event : events)
      if (event.eviction_id() != 0) CHECK(testbed::key(event.pod()) == "default/hog");
  }
}

TEST_CASE("without a history the state file alone has the events of an evictd that was killed, and their numbers") {
  Testbed testbed{gibi_node};
  const Follower hog{testbed, "hog"};
  auto first = crashing("released");
  first.keep_history = false;
  {
    Agent agent{testbed, first};
    agent.wait_for_pods(1);
    hog.hold(800 * mebi);
    REQUIRE(agent.process().wait(60s) == killed_status);
  }
  auto second = options();
  second.keep_history = false;
  Agent agent{testbed, second};
  wait_until_gone(testbed, agent, hog.running);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);
  const auto events = history(agent);
  for (const auto kind :
       {Event::EVICTION_INTENDED, Event::CONTAINERS_KILLED, Event::MEMORY_RELEASED, Event::CLEANUP_DONE})
    CHECK(count(events, kind, "default/hog") == 1);
  for (std::size_t i = 0; i < events.size(); ++i) CHECK(events[i].sequence() == i + 1);
}

TEST_CASE("an eviction that was begun long ago is not carried out by an evictd that comes later") {
  Testbed testbed{gibi_node};
  auto early = crashing("kept");
  early.eviction = "cleanupTimeout: 1s";
  const Follower hog{testbed, "hog"};
  {
    Agent agent{testbed, early};
    agent.wait_for_pods(1);
    hog.hold(800 * mebi);
    REQUIRE(agent.process().wait(60s) == killed_status);
  }
  std::this_thread::sleep_for(2s);
  auto late = options();
  late.thresholds = "evictionHard: {memory.available: 50Mi}";  // it is short of nothing any more
  late.eviction = early.eviction;
  Agent agent{testbed, late};
  agent.wait_for_pods(1);
  agent.process().wait_until_says("default/hog: evictd was away for too long: it is left alone");
  CHECK(agent.status().in_flight().empty());
  CHECK(testbed.cri().is_running(hog.running));
}

TEST_CASE("a soft threshold's grace period goes on over restarts") {
  Testbed testbed{gibi_node};
  const auto soft =
      Agent::Options{.thresholds =
                         "evictionHard: {memory.available: 50Mi}\nevictionSoft: {memory.available: 300Mi}\n"
                         "evictionSoftGracePeriod: {memory.available: 20s}"};
  const auto hog = run_pod(testbed, "hog", {"hold", "800Mi"});
  testbed::wait_until("the hog holds its memory", 60s,
                      [&] { return testbed.node().memory_usage(hog.cgroup) >= 800 * mebi; });
  const auto met_since = [](const Agent& agent) {
    const auto status = agent.status();
    for (const auto& signal : status.signals())
      for (const auto& threshold : signal.thresholds())
        if (threshold.has_met_since())
          return threshold.met_since().seconds() * 1000 + threshold.met_since().nanos() / 1'000'000;
    return std::int64_t{0};
  };
  std::int64_t since = 0;
  for (int life = 0; life < 3; ++life) {
    Agent agent{testbed, soft};
    testbed::wait_until("the soft threshold is met", 30s, [&] { return met_since(agent) != 0; });
    if (since == 0) since = met_since(agent);
    CHECK(std::abs(met_since(agent) - since) < 500);  // as far as the wall clock's reading goes
    CHECK(agent.status().evictions() == 0);
    agent.process().kill();
  }
  Agent agent{testbed, soft};
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);
}

TEST_CASE("a pressure condition, and since when it holds, outlives evictd") {
  Testbed testbed{gibi_node};
  const auto since = [&] {
    const Follower hog{testbed, "hog"};
    Agent agent{testbed, options()};
    agent.wait_for_pods(1);
    hog.hold(800 * mebi);
    agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);
    const auto status = agent.status();
    REQUIRE(status.conditions(0).status());
    agent.process().kill();
    return status.conditions(0).since();
  }();
  Agent agent{testbed, options()};
  const auto status = agent.status();
  CHECK(status.conditions(0).status());
  CHECK(std::abs(status.conditions(0).since().seconds() - since.seconds()) <= 1);
}

TEST_CASE("a state that cannot be used is set aside with a word, and evictd guards on") {
  Testbed testbed{gibi_node};
  testbed::replace_file(testbed.directory() / "state", "no state of evictd's\n");
  Agent agent{testbed, options()};
  agent.process().wait_until_says("runtimeDirectory: " + (testbed.directory() / "state").native() +
                                  ": it is no state of evictd's; it is ");
  CHECK(std::filesystem::exists(testbed.directory() / "state.aside"));
  const Follower hog{testbed, "hog"};
  agent.wait_for_pods(1);
  hog.hold(800 * mebi);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);
}

TEST_CASE("an evictd that expected the pods of another cgroup driver ends, and finds them once it is started anew") {
  auto without_runtime = gibi_node;
  without_runtime.start_containerd = false;
  Testbed testbed{without_runtime};
  const auto memory = testbed.node().memory_directory();
  for (const auto* pods : {"kubepods/burstable", "kubepods/besteffort", "kubepods"})
    std::filesystem::remove(memory / pods);  // the node has just booted
  Agent::Options options{.thresholds = "evictionHard: {memory.available: 300Mi}", .wait_until_ready = false};
  {
    Agent agent{testbed, options};
    std::filesystem::create_directory(memory / "kubepods.slice");
    CHECK(agent.process().wait(60s) == 1);
    CHECK(agent.process().errors().find("node.podsCgroup is kubepods.slice by now, and not kubepods") !=
          std::string::npos);
  }
  Agent agent{testbed, options};
  agent.process().wait_until_says("node.podsCgroup: kubepods.slice (found there)");
  CHECK(agent.process().running());
}

}  // namespace integration::restart_test
