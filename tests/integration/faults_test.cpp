#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fault_scene.hpp"
#include "history.hpp"
#include "stopped.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/mounts.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::faults_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr auto long_enough = FaultScene::long_enough;

pid_t parent_of(pid_t pid) {
  std::istringstream fields{testbed::read_file(fmt::format("/proc/{}/stat", pid))};
  std::string word;
  while (fields >> word && !word.ends_with(')')) {
  }
  char state = 0;
  pid_t parent = 0;
  fields >> state >> parent;
  return parent;
}

}  // namespace

TEST_SUITE_BEGIN("faults");

TEST_CASE("containerd is stopped: the pod is dead all the same, and cleaned up when containerd goes on") {
  FaultScene scene;
  {
    const Stopped containerd{scene.testbed.containerd().pid()};
    scene.cross();
    scene.wait_until_dead();
  }
  scene.wait_until_cleaned();
  scene.check();
}

TEST_CASE("containerd is killed: the pod is dead all the same, and cleaned up when containerd is back") {
  FaultScene scene;
  scene.testbed.containerd().kill9();
  scene.cross();
  scene.wait_until_dead();
  scene.testbed.containerd().start();
  scene.wait_until_cleaned();
  scene.check();
}

TEST_CASE("containerd is slow: it runs for a tenth of the time") {
  FaultScene scene;
  {
    std::jthread slowness{[pid = scene.testbed.containerd().pid()](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const Stopped for_now{pid};
        std::this_thread::sleep_for(90ms);
        ::kill(pid, SIGCONT);
        std::this_thread::sleep_for(10ms);
      }
    }};
    scene.cross();
    scene.wait_until_dead();
    scene.wait_until_cleaned();
  }
  scene.check();
}

TEST_CASE("containerd's socket is gone: what is connected goes on") {
  FaultScene scene;
  std::filesystem::remove(scene.testbed.containerd().socket());
  scene.cross();
  scene.wait_until_dead();
  scene.wait_until_cleaned();
  scene.testbed.containerd().kill9();
  scene.testbed.containerd().start();
  scene.check();
}

TEST_CASE("the pod's shim is killed") {
  FaultScene scene;
  const auto processes = scene.testbed.node().processes(scene.hog->running.cgroup);
  REQUIRE_FALSE(processes.empty());
  ::kill(parent_of(processes.front()), SIGKILL);
  scene.cross();
  scene.wait_until_dead();
  scene.check_victims();
}

TEST_CASE("pods leave while they are ranked") {
  FaultScene scene;
  std::vector<testbed::RunningPod> leaving;
  for (int i = 0; i < 6; ++i)
    leaving.push_back(scene.testbed.cri().run_pod(
        integration::pod(fmt::format("leaving-{}", i), QosClass::BestEffort, {"hold", "8Mi"})));
  scene.agent->wait_for_pods(9);
  scene.cross();
  for (const auto& pod : leaving) scene.testbed.cri().remove(pod);
  scene.wait_until_dead();
  scene.wait_until_cleaned();
  scene.agent->wait_for_pods(2);
  scene.check();
}

TEST_CASE("evictd is stopped for half a minute: it evicts as soon as it goes on") {
  FaultScene scene;
  {
    const Stopped evictd{scene.agent->process().pid()};
    scene.cross();
    std::this_thread::sleep_for(30s);
    CHECK(has_processes(scene.testbed, scene.hog->running));
  }
  scene.wait_until_dead();
  scene.wait_until_cleaned();
  scene.check();
}

TEST_CASE("evictd can open nothing any more (EMFILE): what is open does") {
  FaultScene scene;
  const auto pid = scene.agent->process().pid();
  rlimit before{};
  REQUIRE(::prlimit(pid, RLIMIT_NOFILE, nullptr, &before) == 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};  // 0 to 2 are taken
  REQUIRE(::prlimit(pid, RLIMIT_NOFILE, &none, nullptr) == 0);
  scene.cross();
  scene.wait_until_dead();
  REQUIRE(::prlimit(pid, RLIMIT_NOFILE, &before, nullptr) == 0);
  scene.wait_until_cleaned();
  scene.check();
}

TEST_CASE("the file systems of the state and of the history are full") {
  const auto on = [](Testbed& testbed, const std::string& name) {
    const auto directory = testbed.directory() / name;
    std::filesystem::create_directories(directory);
    testbed::run({"mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", directory});
    std::ofstream(directory / "fill") << std::string(1 << 20, 'x');
    return directory;
  };
  Testbed testbed{gibi_node};
  const auto events = on(testbed, "events");
  const auto state = on(testbed, "full");
  const auto chill = testbed.cri().run_pod(integration::pod("chill", QosClass::Burstable, {"hold", "100Mi"}));
  Agent agent{
      testbed,
      {.thresholds = "evictionHard: {memory.available: 300Mi}", .keep_history = true, .runtime_directory = state}};
  const Follower hog{testbed, "hog"};
  agent.wait_for_pods(2);
  hog.hold(700 * mebi);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", long_enough);
  CHECK(testbed.cri().is_running(chill));
  for (const auto* said : {"runtimeDirectory: ", "stateDirectory: ", "No space left on device"})
    agent.process().wait_until_says(said);
  testbed::unmount_below(testbed.directory() / "events");
  testbed::unmount_below(testbed.directory() / "full");
}

TEST_CASE("evictd is killed at random moments of evictions, again and again") {
  std::mt19937 random{20'261'122};
  FaultScene scene;
  scene.testbed.cri().remove(scene.hog->running);
  for (int round = 0; round < 8; ++round) {
    CAPTURE(round);
    const auto name = fmt::format("hog-{}", round);
    const Follower hog{scene.testbed, name};
    scene.agent->wait_for_pods(3);
    hog.hold(550 * mebi);
    // The crossing comes some 50 ms after this, the end of the eviction some 100 ms later.
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
    scene.agent->process().kill();
    scene.agent.emplace(scene.testbed,
                        Agent::Options{.thresholds = "evictionHard: {memory.available: 300Mi}", .keep_history = true});
    testbed::wait_until("the hog is gone", long_enough, [&] { return !has_processes(scene.testbed, hog.running); });
    testbed::wait_until("nothing is under way", long_enough, [&] { return scene.agent->status().in_flight().empty(); });
    CHECK(scene.testbed.cri().is_running(scene.chill));
    CHECK(scene.testbed.cri().is_running(scene.vital));
    const auto events = history(*scene.agent);
    const auto key = "default/" + name;
    // A kill between the intent and the moment in which it is kept has it decided once more.
    CHECK(count(events, Event::EVICTION_INTENDED, key) <= 2);
    CHECK(count(events, Event::CONTAINERS_KILLED, key) <= 1);
    CHECK(count(events, Event::MEMORY_RELEASED, key) <= 1);
    CHECK(count(events, Event::CLEANUP_DONE, key) <= 1);
    for (const auto& event : events)
      if (event.eviction_id() != 0) CHECK(testbed::key(event.pod()).starts_with("default/hog-"));
    scene.testbed.cri().remove(hog.running);
    scene.agent->wait_for_pods(2);
  }
}

TEST_SUITE_END();

}  // namespace integration::faults_test
