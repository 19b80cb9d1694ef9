#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "testbed/agent.hpp"
#include "testbed/files.hpp"

namespace integration::pids_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;

TEST_CASE("under a limit of process ids the pod that forks most is evicted") {
  testbed::Testbed testbed{{.node = {.memory_limit = 1 << 30, .pids_limit = 300}}};
  const auto quiet =
      testbed.cri().run_pod({.name = "quiet", .qos = QosClass::BestEffort, .containers = {{.args = {"fork", "5"}}}});
  testbed::Agent agent{testbed,
                       {.thresholds = "evictionHard: {pid.available: '150'}", .notifier = "fallbackInterval: 500ms"}};
  agent.wait_for_pods(1);
  const auto forks =
      testbed.cri().run_pod({.name = "forks", .qos = QosClass::BestEffort, .containers = {{.args = {"fork", "180"}}}});

  // By its uid: it may have to go before the runtime has told its name.
  const auto done = agent.events().wait_for("the end of the pod that forks", 60s, [&](const Event& event) {
    return event.kind() == Event::CLEANUP_DONE && forks.cgroup.ends_with(event.pod().uid());
  });
  CHECK(done.signal() == "pid.available");
  CHECK(testbed.cri().is_running(quiet));
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/quiet"));
}

TEST_CASE("of pods that fork the less important one goes first, however many processes it has, and then the other") {
  testbed::Testbed testbed{{.node = {.memory_limit = 1 << 30, .pids_limit = 400}}};
  const auto control = testbed.directory() / "control";
  std::filesystem::create_directory(control);
  constexpr int important = 999'999'999;
  const auto run = [&](const std::string& name, int processes, int priority) {
    const auto load = fmt::format("until [ -e /control/go ]; do sleep 1; done; exec load fork {}", processes);
    testbed::PodSpec pod{.name = name, .qos = QosClass::BestEffort, .priority = priority};
    pod.containers = {{.command = {"sh", "-c", load}}};
    pod.containers[0].mounts.push_back({.host_path = control, .container_path = "/control"});
    return testbed.cri().run_pod(pod);
  };
  static_cast<void>(run("less", 60, 0));
  static_cast<void>(run("more", 140, important));
  const auto quiet = run("quiet", 5, important);
  testbed::Agent agent{testbed,
                       {.thresholds = "evictionHard: {pid.available: '300'}", .notifier = "fallbackInterval: 500ms"}};
  agent.wait_for_pods(3);  // before they fork: its priority says which of them goes
  testbed::write_file(control / "go", "");

  for (const auto* pod : {"default/less", "default/more"})
    CHECK(agent.events().wait_for(Event::CLEANUP_DONE, pod, 60s).signal() == "pid.available");
  std::vector<std::string> evicted;
  for (const auto& event : agent.events().all())
    if (event.kind() == Event::EVICTION_INTENDED) evicted.push_back(event.pod().name());
  CHECK(evicted == std::vector<std::string>{"less", "more"});
  CHECK(testbed.cri().is_running(quiet));
}

}  // namespace integration::pids_test
