// A pod that must go at once for want of memory is held while it ends by itself (eviction.brake).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "history.hpp"
#include "stopped.hpp"
#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/database.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::brake_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Database;
using testbed::Testbed;

namespace {

constexpr auto long_enough = 120s;  // an emulated processor is slow
constexpr auto long_brake = "brake: {time: 60s, floor: 10%}";

Agent::Options options(const std::string& eviction) {
  return {.thresholds = "evictionHard: {memory.available: 300Mi}", .eviction = eviction};
}

/// The file by which a pod is held.
std::filesystem::path limit_file(Testbed& testbed, const testbed::RunningPod& pod) {
  return testbed.node().memory_directory(pod.cgroup) /
         (testbed::cgroup_host().v2 ? "memory.high" : "memory.limit_in_bytes");
}

Event wait_for_phase(Agent& agent, const std::string& pod, const std::string& phase) {
  return agent.events().wait_for("BRAKED " + phase, long_enough, [&](const Event& event) {
    return event.kind() == Event::BRAKED && testbed::key(event.pod()) == pod && event.braked().phase() == phase;
  });
}

bool kernel_killed(Testbed& testbed) {
  if (testbed::cgroup_host().v2) {
    const auto text = testbed::read_file(testbed.node().memory_directory() / "memory.events");
    return text.find("oom_kill 0\n") == std::string::npos;
  }
  return testbed::read_file(testbed.node().memory_directory() / "memory.oom_control").find("oom_kill 0") ==
         std::string::npos;
}

std::string disarm(Testbed& testbed) {
  return testbed::run({testbed::evictd_program(), "disarm", "--config", testbed.directory() / "agent.yaml",
                       "--kubelet-config", testbed.directory() / "kubelet.yaml"});
}

/// Nothing of its eviction is told twice, and nobody else goes.
void check_only(Agent& agent, const std::string& pod) {
  const auto events = history(agent);
  CHECK(count(events, Event::EVICTION_INTENDED, pod) == 1);
  CHECK(count(events, Event::CONTAINERS_KILLED, pod) == 1);
  for (const auto& event : events)
    if (event.kind() == Event::EVICTION_INTENDED) CHECK(testbed::key(event.pod()) == pod);
}

}  // namespace

TEST_CASE("a database that grows at full speed ends in order while it is held, and does not where it is killed") {
  for (const bool brakes : {true, false}) {
    CAPTURE(brakes);
    Testbed testbed{gibi_node};
    const auto chill = testbed.cri().run_pod(pod("chill", QosClass::Burstable, {"hold", "64Mi"}));
    Agent agent{testbed, options(brakes ? "brake: {time: 60s}" : "maxPerMinute: 0")};
    agent.wait_for_pods(1);
    const Database database{testbed};
    agent.events().wait_for(Event::CLEANUP_DONE, "default/database", long_enough);
    CHECK(database.ended_in_order() == brakes);
    CHECK(agent.events().has(Event::BRAKED, "default/database") == brakes);
    if (brakes) {
      const auto held = wait_for_phase(agent, "default/database", "held");
      CHECK(held.braked().limit_bytes() > held.braked().usage_bytes());
      CHECK(held.braked().duration().seconds() == 60);
      const auto ended = wait_for_phase(agent, "default/database", "ended");
      CHECK(ended.braked().why().empty());
      CHECK(ended.eviction_id() == held.eviction_id());
    }
    check_only(agent, "default/database");
    CHECK(testbed.cri().is_running(chill));
    CHECK_FALSE(kernel_killed(testbed));
    CHECK_FALSE(std::filesystem::exists(testbed.directory() / "held"));
  }
}

TEST_CASE("a pod that does not end is killed when its time is over, with all that it has forked meanwhile") {
  Testbed testbed{gibi_node};
  Agent agent{testbed, options("brake: {time: 2s, floor: 10%}")};
  const auto control = testbed.directory() / "hog";
  std::filesystem::create_directory(control);
  testbed::replace_file(control / "size", std::to_string(8 * mebi));
  auto spec = pod("hog", QosClass::BestEffort, {"--ignore-term", "follow", "/control/size"});
  spec.containers.push_back({.name = "forks", .args = {"--ignore-term", "multiply", "/control/go"}});
  for (auto& container : spec.containers)
    container.mounts.push_back({.host_path = control, .container_path = "/control"});
  const auto hog = testbed.cri().run_pod(spec);
  agent.wait_for_pods(1);
  testbed::replace_file(control / "size", std::to_string(740 * mebi));
  static_cast<void>(wait_for_phase(agent, "default/hog", "held"));
  const auto before = testbed.node().processes(hog.cgroup).size();
  testbed::replace_file(control / "go", "");
  testbed::wait_until("it has forked", long_enough, [&] {
    return testbed.node().processes(hog.cgroup).size() > before || !has_processes(testbed, hog);
  });
  static_cast<void>(wait_for_phase(agent, "default/hog", "killed"));
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", long_enough);
  CHECK_FALSE(has_processes(testbed, hog));
  check_only(agent, "default/hog");
}

TEST_CASE("a held pod is killed at once when somebody else takes what is left") {
  Testbed testbed{gibi_node};
  Agent agent{testbed, options("brake: {time: 60s, floor: 80%}")};
  const Follower hog{testbed, "hog", 8 * mebi, {"--ignore-term", "follow", "/control/size"}};
  const auto other = testbed.directory() / "other";
  std::filesystem::create_directory(other);
  testbed::replace_file(other / "size", std::to_string(8 * mebi));
  auto spec = pod("other", QosClass::Guaranteed, {"follow", "/control/size"}, 2'000'000'000);
  spec.containers[0].mounts.push_back({.host_path = other, .container_path = "/control"});
  const auto neighbour = testbed.cri().run_pod(spec);
  agent.wait_for_pods(2);
  hog.hold(715 * mebi);
  testbed::wait_until("the hog is there", long_enough,
                      [&] { return testbed.node().memory_usage(hog.running.cgroup) > 700 * mebi; });
  testbed::replace_file(other / "size", std::to_string(160 * mebi));
  const auto killed = wait_for_phase(agent, "default/hog", "killed");
  CHECK(killed.braked().why().starts_with("memory.available fell to "));
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", long_enough);
  CHECK(testbed.cri().is_running(neighbour));
}

TEST_CASE("evictd is killed while a pod is held: the next one, or disarm, lets it go, and it is killed once") {
  for (const bool by_disarm : {true, false}) {
    CAPTURE(by_disarm);
    Testbed testbed{gibi_node};
    std::optional<Agent> first{std::in_place, testbed, options(long_brake)};
    const Follower hog{testbed, "hog", 8 * mebi, {"--ignore-term", "follow", "/control/size"}};
    first->wait_for_pods(1);
    const auto file = limit_file(testbed, hog.running);
    const auto before = testbed::read_file(file);
    hog.hold(740 * mebi);
    static_cast<void>(wait_for_phase(*first, "default/hog", "held"));
    CHECK(testbed::read_file(file) != before);
    first->process().kill();
    first.reset();
    CHECK(testbed::read_file(file) != before);
    CHECK(has_processes(testbed, hog.running));
    if (by_disarm) {
      CHECK(disarm(testbed).ends_with("let go of one pod that was held\n"));
      CHECK(testbed::read_file(file) == before);
      if (!testbed::cgroup_host().v2)
        CHECK(testbed::read_file(file.parent_path() / "memory.oom_control").starts_with("oom_kill_disable 0"));
    }
    Agent second{testbed, options(long_brake)};
    second.events().wait_for(Event::CLEANUP_DONE, "default/hog", long_enough);
    CHECK_FALSE(has_processes(testbed, hog.running));
    CHECK(count(history(second), Event::CONTAINERS_KILLED, "default/hog") == 1);
  }
}

TEST_CASE("evictd ends in order while a pod is held: the pod is killed, and nothing is left of the brake") {
  Testbed testbed{gibi_node};
  Agent agent{testbed, options(long_brake)};
  const Follower hog{testbed, "hog", 8 * mebi, {"--ignore-term", "follow", "/control/size"}};
  agent.wait_for_pods(1);
  const auto file = limit_file(testbed, hog.running);
  const auto before = testbed::read_file(file);
  hog.hold(740 * mebi);
  static_cast<void>(wait_for_phase(agent, "default/hog", "held"));
  CHECK(testbed::read_file(file) != before);
  agent.process().signal(SIGTERM);
  CHECK(agent.process().wait(long_enough) == 0);
  CAPTURE(agent.process().errors());
  // evictd awaits the runtime for 5 s, which an emulated processor can outlast: then the next one goes on.
  std::optional<Agent> next;
  if (agent.process().errors().find("is still being cleaned up") != std::string::npos)
    next.emplace(testbed, options(long_brake)).events().wait_for(Event::CLEANUP_DONE, "default/hog", long_enough);
  CHECK_FALSE(has_processes(testbed, hog.running));
  CHECK((!std::filesystem::exists(file) || testbed::read_file(file) == before));
}

TEST_CASE("containerd stands still while a pod is held: it is killed all the same") {
  Testbed testbed{gibi_node};
  Agent agent{testbed, options("brake: {time: 1s, floor: 10%}")};
  const Follower hog{testbed, "hog"};
  agent.wait_for_pods(1);
  {
    const Stopped containerd{testbed.containerd().pid()};
    hog.hold(740 * mebi);
    static_cast<void>(wait_for_phase(agent, "default/hog", "killed"));
    testbed::wait_until("the hog is dead", long_enough,
                        [&] { return testbed.node().memory_usage(hog.running.cgroup) < 100 * mebi; });
  }
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", long_enough);
  check_only(agent, "default/hog");
}

TEST_CASE("a pod that cannot be held is killed at once, and the log says why") {
  Testbed testbed{gibi_node};
  const auto run = testbed.directory() / "other-run";
  std::filesystem::create_directory(run);
  testbed::replace_file(run / "held", "no directory");
  auto refusing = options(long_brake);
  refusing.runtime_directory = run;
  Agent agent{testbed, refusing};
  const Database database{testbed};
  agent.events().wait_for(Event::CLEANUP_DONE, "default/database", long_enough);
  CHECK_FALSE(agent.events().has(Event::BRAKED, "default/database"));
  CHECK_FALSE(database.ended_in_order());
  agent.process().wait_until_says("default/database could not be held, and was killed at once");
}

}  // namespace integration::brake_test
