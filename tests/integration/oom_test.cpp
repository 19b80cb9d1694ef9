// The last resort of cgroup v1: nothing but the kernel's OOM event wakes evictd.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace integration::oom_test {

using namespace std::chrono_literals;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;
const auto small_node = Testbed::Options{.node = {.memory_limit = 512 * mebi}};
const Agent::Options with_nothing_else{
    .thresholds = "evictionHard: {memory.available: 100Mi}",
    .notifier = "disable: [memcg, sampler, psi, files], v2: sampler, fallbackInterval: 5m"};

bool on_v2() {
  const auto host = testbed::find_cgroup_host();
  return !host || host->v2;
}

/// A pod that takes more than the node has, once it is told to.
struct Hog {
  std::filesystem::path file;
  testbed::RunningPod running;

  explicit Hog(Testbed& testbed) : file{testbed.directory() / "hog" / "size"} {
    std::filesystem::create_directory(file.parent_path());
    testbed::replace_file(file, "8Mi");
    testbed::PodSpec spec{.name = "hog", .containers = {{.args = {"follow", "/control/size"}}}};
    spec.containers[0].mounts.push_back({.host_path = file.parent_path(), .container_path = "/control"});
    running = testbed.cri().run_pod(spec);
  }
  void overflow() const { testbed::replace_file(file, "600Mi"); }
};

std::uint64_t oom_wake_ups(const Agent& agent, const std::string& cgroup) {
  const auto status = agent.status();
  const auto source =
      std::ranges::find_if(status.wake_sources(), [&](const auto& each) { return each.name() == "oom " + cgroup; });
  REQUIRE(source != status.wake_sources().end());
  CHECK(source->state() == "armed");
  return source->wake_ups();
}

}  // namespace

TEST_CASE("when every threshold failed, the kernel's OOM event still has the right pod evicted" *
          doctest::skip(on_v2())) {
  Testbed testbed{small_node};
  Agent agent{testbed, with_nothing_else};
  const Hog hog{testbed};
  agent.wait_for_pods(1);
  // The kernel kills nobody and lets the hog wait for memory: what ends this is evictd or nothing.
  testbed::write_file(testbed.node().memory_directory() / "memory.oom_control", "1");
  hog.overflow();
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 60s);
  CHECK(intended.wake().source() == "oom");
  CHECK(intended.signal() == "memory.available");
  const auto& node = testbed.node().cgroup();
  CHECK(std::ranges::count(intended.wake().reasons(), "oom: " + node + " is out of memory") == 1);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);
  CHECK(testbed.node().processes(hog.running.cgroup).empty());
  CHECK(oom_wake_ups(agent, node) >= 1);
}

TEST_CASE("where the kernel kills by itself, evictd is told all the same" * doctest::skip(on_v2())) {
  Testbed testbed{small_node};
  Agent agent{testbed, with_nothing_else};
  const Hog hog{testbed};
  agent.wait_for_pods(1);
  CHECK(oom_wake_ups(agent, testbed.node().cgroup()) == 0);
  hog.overflow();
  testbed::wait_until("the event has come", 60s, [&] { return oom_wake_ups(agent, testbed.node().cgroup()) >= 1; });
  // An event of the node's is one of all cgroups in it.
  testbed::wait_until("the pods' own came with it", 60s,
                      [&] { return oom_wake_ups(agent, testbed.node().cgroup() + "/kubepods") >= 1; });
}

}  // namespace integration::oom_test
