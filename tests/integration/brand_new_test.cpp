#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

/// A process in a pod's container, by cgroups of the kubelet's names, of which no runtime knows.
testbed::Process run_unlisted(const testbed::NodeCgroup& node, std::string_view uid, const std::string& load) {
  const auto container = node.pod_cgroup(QosClass::BestEffort, uid) + "/main";
  const auto directory = node.memory_directory(container);
  std::filesystem::create_directories(directory);
  // On v2 each level hands the controllers down.
  for (auto above = node.memory_directory(); above != directory;) {
    const auto control = above / "cgroup.subtree_control";
    if (std::filesystem::exists(control)) std::ofstream{control} << "+memory +pids";
    const auto rest = directory.lexically_relative(above);
    above /= *rest.begin();
  }
  const auto script = fmt::format("echo $$ > {}/cgroup.procs && exec {} {}", directory.native(),
                                  testbed::load_program().native(), load);
  return testbed::Process{{"sh", "-c", script}};
}

}  // namespace

TEST_CASE("a brand-new pod that hogs at once is evicted before it was ever listed") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto calm =
      testbed.cri().run_pod({.name = "calm", .qos = QosClass::BestEffort, .containers = {{.args = {"hold", "32Mi"}}}});
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}"}};
  agent.wait_for_pods(1);

  const std::string uid = "11111111-2222-3333-4444-555555555555";
  auto hog = run_unlisted(testbed.node(), uid, "grow 16Mi 400Mi/s");
  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "unlisted/" + uid, 60s);
  CHECK(done.signal() == "memory.available");
  const auto killed = agent.events().wait_for(Event::CONTAINERS_KILLED, "unlisted/" + uid, 1s);
  CHECK(killed.containers_killed().method() != "StopContainer");
  CHECK(hog.wait(30s) == 128 + SIGKILL);
  CHECK(testbed.cri().is_running(calm));
}

TEST_CASE("an evicted pod whose container is started again is killed again") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}"}};
  const auto run = [&](std::vector<std::string> load, std::uint32_t attempt) {
    return testbed.cri().run_pod({.name = "back",
                                  .uid = "back-1",
                                  .attempt = attempt,
                                  .qos = QosClass::BestEffort,
                                  .containers = {{.args = std::move(load)}}});
  };
  run({"grow", "16Mi", "400Mi/s"}, 0);
  const auto first = agent.events().wait_for(Event::CLEANUP_DONE, "default/back", 60s);
  const auto again = run({"hold", "8Mi"}, 1);
  testbed::wait_until("it is killed again", 60s, [&] { return !testbed.cri().is_running(again); });
  testbed::wait_until("which belongs to the first eviction", 30s, [&] {
    const auto events = agent.events().all();
    return std::ranges::count_if(events, [&](const Event& event) {
             return event.kind() == Event::CLEANUP_DONE && event.eviction_id() == first.eviction_id();
           }) == 2;
  });
  CHECK(std::ranges::count(agent.events().all(), Event::EVICTION_INTENDED, &Event::kind) == 1);
}
