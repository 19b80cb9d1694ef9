// What the sampler sees, with a fallback timer that would come minutes later.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "small_disk.hpp"
#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace integration::sampler_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;
const auto gibi_node = Testbed::Options{.node = {.memory_limit = 1024 * mebi}};

/// Without what else might look first on a slow machine: a stall, or a file that was written.
constexpr auto alone = "disable: [psi, files], v2: sampler, fallbackInterval: 5m";

testbed::PodSpec pod(std::string name, std::vector<std::string> load) {
  return {.name = std::move(name), .qos = QosClass::BestEffort, .containers = {{.args = std::move(load)}}};
}

/// The first eviction's intent.
Event intent(Agent& agent) {
  const auto events = agent.events().all();
  const auto intended = std::ranges::find(events, Event::EVICTION_INTENDED, &Event::kind);
  REQUIRE(intended != events.end());
  return *intended;
}

/// The entries of the status whose names begin so.
std::vector<evictd::v1::WakeSource> sources(const Agent& agent, std::string_view name) {
  std::vector<evictd::v1::WakeSource> result;
  const auto status = agent.status();
  std::ranges::copy_if(status.wake_sources(), std::back_inserter(result),
                       [&](const auto& source) { return source.name().starts_with(name); });
  return result;
}

/// Makes a pod hold so much file cache that nobody has used twice: it is written out, so it can go at any time.
void fill_cache(Testbed& testbed, std::int64_t bytes) {
  const auto directory = testbed.directory() / "archive";
  std::filesystem::create_directory(directory);
  auto spec = pod("archive", {"write", "/archive", fmt::format("{}", bytes), "500Mi/s"});
  spec.containers[0].mounts.push_back({.host_path = directory, .container_path = "/archive"});
  static_cast<void>(testbed.cri().run_pod(spec));
  testbed::wait_until("the archive is written", 60s, [&] {
    std::error_code error;
    return std::filesystem::file_size(directory / "load.data", error) == static_cast<std::uintmax_t>(bytes);
  });
  testbed::run({"sync", "-f", directory});
  REQUIRE(testbed.node().memory_usage() > bytes);
  testbed::wait_until("the archive is cache that can go", 30s,
                      [&] { return testbed.node().memory_stat("inactive_file") > bytes * 9 / 10; });
}

}  // namespace

TEST_CASE("a pod that grows at the cost of file cache, while the usage stays as it is, is evicted") {
  Testbed testbed{gibi_node};
  // More than the threshold, so that cache can hide a crossing; and with room below the level from which it can: on a
  // machine that was just started a node's programs bring 200 MiB of their own files with them.
  fill_cache(testbed, 400 * mebi);
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}", .notifier = alone}};
  agent.wait_for_pods(1);
  if (!testbed::cgroup_host().v2) {
    CAPTURE(testbed.node().memory_usage());
    CAPTURE(testbed.node().memory_stat("inactive_file"));
    // The threshold itself lies beyond the node's limit: no usage ever reaches it.
    CHECK(sources(agent, "memcg memory.available<300Mi").size() == 2);
    CHECK(sources(agent, "memcg memory.available<300Mi unless file cache").size() == 1);
    const auto sampler = sources(agent, "sampler memory.available");
    REQUIRE(sampler.size() == 1);
    CHECK(sampler[0].detail().starts_with("the kernel watches from afar; "));
  }
  static_cast<void>(testbed.cri().run_pod(pod("bloat", {"grow", "16Mi", "100Mi/s"})));
  agent.events().wait_for(Event::CLEANUP_DONE, "default/bloat", 60s);

  CHECK(testbed::key(intent(agent).pod()) == "default/bloat");
  // On cgroup v2 the kernel also tells, again and again, that the node's limit has it take cache back: the crossing may
  // come just then.
  const auto source = intent(agent).wake().source();
  CHECK((source == "sampler" || (testbed::cgroup_host().v2 && source == "memory.events")));
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/archive"));
}

TEST_CASE("without the kernel's help the sampler sees a pod grow over the threshold") {
  Testbed testbed{gibi_node};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 300Mi}",
               .notifier = "disable: [memcg, psi, files], v2: sampler, fallbackInterval: 5m"}};
  static_cast<void>(testbed.cri().run_pod(pod("bloat", {"grow", "16Mi", "100Mi/s"})));
  agent.events().wait_for(Event::CLEANUP_DONE, "default/bloat", 60s);

  CHECK(intent(agent).wake().source() == "sampler");
  CHECK(intent(agent).signal() == "memory.available");
  const auto sampler = sources(agent, "sampler memory.available");
  REQUIRE(sampler.size() == 1);
  CHECK(sampler[0].wake_ups() >= 1);
  CHECK(sampler[0].has_last_wake());
}

TEST_CASE("a pod that fills the node's disk is seen by the sampler, long before the timer would look") {
  SmallDisk disk{{.bytes = 400 * mebi}};
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .containerd = {.root = disk.directory("containerd")}}};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {nodefs.available: 100Mi}",
               .kubelet = fmt::format("podLogsDir: {}\n", disk.directory("logs").native()),
               .node = fmt::format("kubeletRoot: {}", disk.directory("kubelet").native()),
               .notifier = alone}};
  REQUIRE(disk.available() > 150 * mebi);
  static_cast<void>(testbed.cri().run_pod(pod("greedy", {"write", "/data", "350Mi", "60Mi/s"})));
  agent.events().wait_for(Event::CLEANUP_DONE, "default/greedy", 60s);

  CHECK(intent(agent).wake().source() == "sampler");
  CHECK(intent(agent).signal() == "nodefs.available");
}

TEST_CASE("a pod that takes the node's inodes is seen by the sampler") {
  SmallDisk disk{{.bytes = 400 * mebi, .inodes = 6000}};
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .containerd = {.root = disk.directory("containerd")}}};
  Agent agent{testbed,
              {.thresholds = fmt::format("evictionHard: {{nodefs.inodesFree: '{}'}}", disk.free_inodes() - 1000),
               .kubelet = fmt::format("podLogsDir: {}\n", disk.directory("logs").native()),
               .node = fmt::format("kubeletRoot: {}", disk.directory("kubelet").native()),
               .notifier = alone}};
  const auto many = testbed.cri().run_pod(pod("many", {"inodes", "/data", "2500"}));
  // It may be done before the runtime lists it: then it goes by its cgroup's name, and where even that came later, at
  // the deadline of the retry and not by the sampler's own wake.
  agent.events().wait_for("the pod goes", 60s, [&](const Event& event) {
    return event.kind() == Event::CLEANUP_DONE && event.pod().uid() == many.uid;
  });
  // The runtime's files lie on that disk as well: containerfs has a copy of the threshold, and either may be met first.
  const auto inodes = sources(agent, "sampler ");
  REQUIRE(inodes.size() == 2);
  CHECK(inodes[0].name() == "sampler nodefs.inodesFree");
  CHECK(inodes[1].name() == "sampler containerfs.inodesFree");
  CHECK(inodes[0].wake_ups() + inodes[1].wake_ups() >= 1);
  CHECK(intent(agent).signal() == "nodefs.inodesFree");
}

}  // namespace integration::sampler_test
