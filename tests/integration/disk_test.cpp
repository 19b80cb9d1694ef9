#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "disks.hpp"
#include "os/file_descriptor.hpp"
#include "small_disk.hpp"
#include "testbed/agent.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace integration::disk_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

/// A node whose images, layers, volumes and logs lie on one small disk.
struct Node {
  SmallDisk disk;
  Testbed testbed;

  explicit Node(const SmallDisk::Options& options)
      : disk{options},
        testbed{{.node = {.memory_limit = 1024 * mebi}, .containerd = {.root = disk.directory("containerd")}}} {}

  /// `interval`: how often volumes are walked, and layers are asked for, where no file event tells. `image_age`:
  /// imageMinimumGCAge. All images have just been made; with a negative one none is too young.
  [[nodiscard]] Agent guard(const std::string& thresholds, const std::string& interval = "1h",
                            const std::string& image_age = "-1s") {
    return {
        testbed,
        {.thresholds = thresholds,
         .kubelet = fmt::format("podLogsDir: {}\nimageMinimumGCAge: {}\n", disk.directory("logs").native(), image_age),
         .node = fmt::format("kubeletRoot: {}, diskUsageInterval: {}", disk.directory("kubelet").native(), interval),
         .notifier = "fallbackInterval: 500ms"}};
  }

  testbed::RunningPod run(const std::string& name, std::vector<std::string> load, const std::string& spec = {}) {
    testbed::PodSpec pod{.name = name, .qos = QosClass::BestEffort, .containers = {{.args = std::move(load)}}};
    if (!spec.empty()) pod.annotations["evictd.io/pod-spec"] = spec;
    return testbed.cri().run_pod(pod);
  }

  /// A pod that writes to its emptyDir, or else to its writable layer, as much as there is room for.
  struct Writer {
    std::string name;
    std::string size;
    std::string limit{};      ///< of its container's ephemeral-storage; empty: none
    std::string empty_dir{};  ///< as its spec has it, JSON; empty: there is none
  };
  [[nodiscard]] static std::string uid_of(const std::string& pod) { return pod + "-0000-1111"; }
  [[nodiscard]] std::filesystem::path volume(const std::string& pod) const {
    return disk.directory("kubelet/pods/" + uid_of(pod) + "/volumes/kubernetes.io~empty-dir/cache");
  }
  testbed::RunningPod run(const Writer& writer) {
    const auto load = fmt::format("load write /data {} 60Mi/s; exec load hold 1Mi", writer.size);
    testbed::PodSpec pod{.name = writer.name, .uid = uid_of(writer.name), .qos = QosClass::BestEffort};
    pod.containers = {{.command = {"sh", "-c", load}}};
    if (!writer.empty_dir.empty())
      pod.containers[0].mounts.push_back({.host_path = volume(writer.name), .container_path = "/data"});
    const auto resources =
        writer.limit.empty() ? "" : fmt::format(R"("limits": {{"ephemeral-storage": "{}"}})", writer.limit);
    const auto volumes =
        writer.empty_dir.empty() ? "" : fmt::format(R"({{"name": "cache", "emptyDir": {}}})", writer.empty_dir);
    pod.annotations["evictd.io/pod-spec"] = fmt::format(
        R"({{"containers": [{{"name": "main", "resources": {{{}}}}}], "volumes": [{}]}})", resources, volumes);
    return testbed.cri().run_pod(pod);
  }
};

/// A file that takes so much of its disk.
void write_ballast(const std::filesystem::path& path, std::int64_t bytes) {
  const evictd::os::FileDescriptor opened{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0640)};
  REQUIRE(opened);
  REQUIRE(::posix_fallocate(opened.get(), 0, bytes) == 0);
}

}  // namespace

TEST_CASE("on a disk that fills up unused images and dead containers go first, and no pod when that suffices") {
  Node node{{.bytes = 600 * mebi}};
  node.testbed.containerd().import_image("evictd.test/unused:1", 60 * mebi);
  const auto dead = node.run("dead", {"hold", "4Mi"});
  node.testbed.cri().stop(dead, 0s);
  const auto busy = node.run("busy", {"hold", "4Mi"});
  REQUIRE(has_image(node.testbed, "evictd.test/unused:1"));
  auto agent = node.guard("evictionHard: {nodefs.available: 100Mi}");
  agent.wait_for_pods(1);
  leave(node.disk, 90 * mebi);

  const auto reclaimed = agent.events().wait_for(Event::NODE_RECLAIMED, "", 60s);
  CHECK(reclaimed.signal() == "nodefs.available");
  CHECK(reclaimed.node_reclaimed().images_removed() >= 1);
  CHECK(reclaimed.node_reclaimed().containers_removed() >= 1);
  CHECK(reclaimed.node_reclaimed().available_after() > reclaimed.node_reclaimed().available_before());
  CHECK(std::ranges::any_of(reclaimed.node_reclaimed().signals(), [](const auto& signal) {
    return signal.signal() == "imagefs.inodesFree" && signal.available_after() > signal.available_before();
  }));
  testbed::wait_until("the pressure is off", 30s, [&] { return node.disk.available() > 100 * mebi; });
  CHECK_FALSE(has_image(node.testbed, "evictd.test/unused:1"));
  CHECK(has_image(node.testbed, "evictd.test/load:1"));
  CHECK(has_image(node.testbed, "registry.k8s.io/pause:3.6"));
  CHECK(node.testbed.cri().is_running(busy));
  CHECK(std::ranges::none_of(node.testbed.cri().containers(),
                             [&](const auto& container) { return container.id() == dead.container(); }));
  wait_for_passes(agent, 3);
  CHECK(evicted(agent).empty());
}

TEST_CASE("on a disk that runs out of inodes unused images go first, and no pod when that suffices") {
  Node node{{.bytes = 400 * mebi, .inodes = 6000}};
  const auto without_image = node.disk.free_inodes();
  node.testbed.containerd().import_image("evictd.test/unused:1", mebi, 1500);
  REQUIRE(node.disk.free_inodes() < without_image - 1500);
  const auto threshold = node.disk.free_inodes() - 400;  // a start takes some dozens
  auto agent = node.guard(fmt::format("evictionHard: {{nodefs.inodesFree: '{}'}}", threshold));
  const auto taker = node.run("taker", {"inodes", "/data", "900"});

  const auto reclaimed = agent.events().wait_for(Event::NODE_RECLAIMED, "", 60s);
  CHECK(reclaimed.signal() == "nodefs.inodesFree");
  CHECK(reclaimed.node_reclaimed().images_removed() >= 1);
  testbed::wait_until("the pressure is off", 30s, [&] { return node.disk.free_inodes() > threshold; });
  CHECK_FALSE(has_image(node.testbed, "evictd.test/unused:1"));
  wait_for_passes(agent, 3);
  CHECK(node.testbed.cri().is_running(taker));
  CHECK(evicted(agent).empty());
}

TEST_CASE("an image that is too young stays on a disk that fills up, and a pod goes in its place") {
  Node node{{.bytes = 600 * mebi}};
  node.testbed.containerd().import_image("evictd.test/unused:1", 60 * mebi);
  node.run("greedy", {"write", "/data", "50Mi", "200Mi/s"});
  auto agent = node.guard("evictionHard: {nodefs.available: 100Mi}", "1h", "1h");
  agent.wait_for_pods(1);
  testbed::wait_until("the runtime has measured it", 60s, [&] { return layers(node.testbed).bytes >= 50 * mebi; });
  leave(node.disk, 90 * mebi);

  const auto reclaimed = agent.events().wait_for(Event::NODE_RECLAIMED, "", 60s);
  CHECK(reclaimed.node_reclaimed().images_removed() == 0);
  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/greedy", 60s);
  CHECK(done.signal() == "nodefs.available");
  CHECK(has_image(node.testbed, "evictd.test/unused:1"));
}

TEST_CASE("a disk that the logs of a dead container fill is freed of them, and no pod goes") {
  Node node{{.bytes = 400 * mebi}};
  testbed::PodSpec spec{.name = "chatty", .uid = "chatty-0000-1111", .containers = {{.args = {"hold", "4Mi"}}}};
  spec.qos = QosClass::BestEffort;
  const auto logs = node.disk.directory("logs/default_chatty_chatty-0000-1111");
  spec.log_directory = logs;
  const auto dead = node.testbed.cri().run_pod(spec);
  node.testbed.cri().stop(dead, 0s);
  write_ballast(logs / "main/0.log.20260101-000000", 100 * mebi);
  write_ballast(logs / "main/1.log", 1 * mebi);  // of another attempt, of which nobody has heard
  const auto busy = node.run("busy", {"hold", "4Mi"});
  auto agent = node.guard("evictionHard: {nodefs.available: 100Mi}");
  agent.wait_for_pods(1);
  leave(node.disk, 60 * mebi);

  const auto reclaimed = agent.events().wait_for(Event::NODE_RECLAIMED, "", 60s);
  CHECK(reclaimed.node_reclaimed().containers_removed() >= 1);
  testbed::wait_until("the pressure is off", 30s, [&] { return node.disk.available() > 100 * mebi; });
  CHECK_FALSE(std::filesystem::exists(logs / "main/0.log"));
  CHECK_FALSE(std::filesystem::exists(logs / "main/0.log.20260101-000000"));
  CHECK(std::filesystem::exists(logs / "main/1.log"));
  wait_for_passes(agent, 3);
  CHECK(evicted(agent).empty());
  CHECK(node.testbed.cri().is_running(busy));
}

TEST_CASE("when reclaiming does not suffice the pod that is furthest over its request goes, not the largest") {
  Node node{{.bytes = 600 * mebi}};
  const auto thrifty =
      node.run("thrifty", {"write", "/data", "80Mi", "200Mi/s"},
               R"({"containers": [{"name": "main", "resources": {"requests": {"ephemeral-storage": "100Mi"}}}]})");
  const auto greedy = node.run("greedy", {"write", "/data", "50Mi", "200Mi/s"});
  auto agent = node.guard("evictionHard: {nodefs.available: 100Mi}");
  agent.wait_for_pods(2);
  testbed::wait_until("the runtime has measured both", 60s, [&] { return layers(node.testbed).bytes >= 130 * mebi; });
  leave(node.disk, 80 * mebi);

  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/greedy", 60s);
  CHECK(done.signal() == "nodefs.available");
  CHECK(agent.events().wait_for(Event::NODE_RECLAIMED, "", 1s).sequence() < done.eviction_id());
  testbed::wait_until("its layer is given back", 30s, [&] { return node.disk.available() > 100 * mebi; });
  CHECK(node.testbed.cri().is_running(thrifty));
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/thrifty"));
}

TEST_CASE("of pods that fill the disk the less important one goes first, and one within its request stays") {
  Node node{{.bytes = 600 * mebi}};
  constexpr int important = 999'999'999;
  const auto run = [&](const std::string& name, const std::string& size, int priority) {
    testbed::PodSpec pod{.name = name, .qos = QosClass::BestEffort, .priority = priority};
    pod.containers = {{.args = {"write", "/data", size, "200Mi/s"}}};
    static_cast<void>(node.testbed.cri().run_pod(pod));
  };
  run("less", "30Mi", 0);
  run("more", "80Mi", important);
  const auto within =
      node.run("within", {"write", "/data", "40Mi", "200Mi/s"},
               R"({"containers": [{"name": "main", "resources": {"requests": {"ephemeral-storage": "100Mi"}}}]})");
  auto agent = node.guard("evictionHard: {nodefs.available: 100Mi}");
  agent.wait_for_pods(3);
  testbed::wait_until("the runtime has measured all", 60s, [&] { return layers(node.testbed).bytes >= 150 * mebi; });
  leave(node.disk, 50 * mebi);

  for (const auto* pod : {"default/less", "default/more"})
    CHECK(agent.events().wait_for(Event::CLEANUP_DONE, pod, 60s).signal() == "nodefs.available");
  testbed::wait_until("their layers are given back", 30s, [&] { return node.disk.available() > 100 * mebi; });
  wait_for_passes(agent, 3);
  CHECK(evicted(agent) == std::vector<std::string>{"less", "more"});
  CHECK(node.testbed.cri().is_running(within));
}

TEST_CASE("a static critical pod that fills the disk stays, and the node is short of it") {
  Node node{{.bytes = 400 * mebi}};
  auto agent = node.guard(fmt::format("evictionHard: {{nodefs.available: '{}'}}", node.disk.available() - 60 * mebi));
  const auto hog = node.testbed.cri().run_pod({.name = "hog",
                                               .name_space = "kube-system",
                                               .qos = QosClass::BestEffort,
                                               .priority = 2'000'001'000,
                                               .annotations = {{"kubernetes.io/config.source", "file"}},
                                               .containers = {{.args = {"write", "/data", "100Mi", "200Mi/s"}}}});
  agent.wait_for_pod(hog.uid);
  const auto nobody = agent.events().wait_for(Event::EVICTION_FAILED, "", 60s);
  CHECK(nobody.signal() == "nodefs.available");
  CHECK(nobody.eviction_failed().error() == "no pod may be evicted");
  wait_for_passes(agent, 3);
  const auto status = agent.status();
  CHECK(std::ranges::any_of(status.conditions(), [](const auto& condition) {
    return condition.type() == "DiskPressure" && condition.status();
  }));
  CHECK(node.testbed.cri().is_running(hog));
  CHECK(evicted(agent).empty());
}

TEST_CASE("a soft threshold evicts when its time is over, and leaves a pod its own time, which is below the longest") {
  Node node{{.bytes = 600 * mebi}};
  const auto modest = node.run("modest", {"hold", "4Mi"});
  testbed::PodSpec spec{.name = "hog", .qos = QosClass::BestEffort, .termination_grace_period = 3s};
  spec.containers = {{.args = {"--ignore-term", "write", "/data", "50Mi", "200Mi/s"}}};
  const auto hog = node.testbed.cri().run_pod(spec);
  auto agent = node.guard(
      "evictionHard: {}\n"
      "evictionSoft: {nodefs.available: 100Mi}\n"
      "evictionSoftGracePeriod: {nodefs.available: 2s}\n"
      "evictionMaxPodGracePeriod: 30\n");
  agent.wait_for_pods(2);
  testbed::wait_until("the runtime has measured the hog", 60s,
                      [&] { return layers(node.testbed, hog.container()).bytes >= 50 * mebi; });
  leave(node.disk, 80 * mebi);

  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 60s);
  const auto crossed = agent.events().wait_for(Event::THRESHOLD_CROSSED, "", 1s);
  CHECK(intended.signal() == "nodefs.available");
  // The time runs from the reading of the disk, which is a little before it is told.
  CHECK(std::chrono::nanoseconds(intended.monotonic_ns() - crossed.monotonic_ns()) >= 1s);
  CHECK(intended.eviction_intended().grace_period_seconds() == 3);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);
  testbed::wait_until("its layer is given back", 60s, [&] { return node.disk.available() > 100 * mebi; });
  wait_for_passes(agent, 3);
  CHECK(node.testbed.cri().is_running(modest));
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/modest"));
}

TEST_CASE("a disk that runs out of inodes evicts the pod that holds most of them") {
  Node node{{.bytes = 400 * mebi, .inodes = 6000}};
  const auto few = node.run("few", {"inodes", "/data", "10"});
  const auto many = node.run("many", {"inodes", "/data", "2500"});
  testbed::wait_until("the runtime has measured both", 60s, [&] { return layers(node.testbed).inodes >= 2500; });
  auto agent = node.guard(fmt::format("evictionHard: {{nodefs.inodesFree: '{}'}}", node.disk.free_inodes() + 500));

  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/many", 60s);
  CHECK(done.signal() == "nodefs.inodesFree");
  CHECK(node.testbed.cri().is_running(few));
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/few"));
}

TEST_CASE("an emptyDir over its limit evicts exactly its pod") {
  Node node{{.bytes = 400 * mebi}};
  auto agent = node.guard("evictionHard: {nodefs.available: 1Mi}");
  const auto within = node.run(Node::Writer{.name = "within", .size = "30Mi", .empty_dir = R"({"sizeLimit": "50Mi"})"});
  const auto volume = node.volume("beyond");
  static_cast<void>(node.run(Node::Writer{.name = "beyond", .size = "30Mi", .empty_dir = R"({"sizeLimit": "20Mi"})"}));

  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/beyond", 60s);
  CHECK(intended.signal() == "emptydirfs.limit");
  agent.events().wait_for(Event::CLEANUP_DONE, "default/beyond", 60s);
  CHECK(node.testbed.cri().is_running(within));
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/within"));
  // No kubelet runs that would remove it.
  CHECK_FALSE(std::filesystem::exists(volume));
}

TEST_CASE("an emptyDir that fills the disk comes back with its pod, and no second one goes") {
  Node node{{.bytes = 400 * mebi}};
  const auto before = node.disk.available();
  const auto chill = node.run(Node::Writer{.name = "chill", .size = "30Mi", .empty_dir = "{}"});
  auto agent = node.guard(fmt::format("evictionHard: {{nodefs.available: '{}'}}", before - 130 * mebi), "1s");
  const auto volume = node.volume("bloat");
  static_cast<void>(node.run(Node::Writer{.name = "bloat", .size = "160Mi", .empty_dir = "{}"}));
  CHECK(agent.events().wait_for(Event::EVICTION_INTENDED, "default/bloat", 60s).signal() == "nodefs.available");
  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/bloat", 60s);
  CHECK_FALSE(done.cleanup_done().timed_out());
  CHECK_FALSE(std::filesystem::exists(volume));
  testbed::wait_until("the disk is as free as without it", 60s,
                      [&] { return node.disk.available() > before - 60 * mebi; });
  wait_for_passes(agent, 10);
  CHECK(node.testbed.cri().is_running(chill));
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/chill"));
}

TEST_CASE("pods beyond the limits of their local storage go, and those just below stay") {
  Node node{{.bytes = 400 * mebi}};
  auto agent = node.guard("evictionHard: {nodefs.available: 1Mi}", "1s");
  // As a kubelet mounts it: no larger than its limit, so that nobody writes beyond that.
  testbed::run({"mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", node.volume("in-memory")});
  static_cast<void>(
      node.run(Node::Writer{.name = "volume-over", .size = "30Mi", .empty_dir = R"({"sizeLimit": "20Mi"})"}));
  static_cast<void>(node.run(Node::Writer{.name = "layer-over", .size = "30Mi", .limit = "20Mi"}));
  static_cast<void>(node.run(Node::Writer{.name = "pod-over", .size = "30Mi", .limit = "20Mi", .empty_dir = "{}"}));
  const std::array stay{
      node.run(Node::Writer{
          .name = "in-memory", .size = "30Mi", .empty_dir = R"({"medium": "Memory", "sizeLimit": "20Mi"})"}),
      node.run(Node::Writer{.name = "volume-below", .size = "18Mi", .empty_dir = R"({"sizeLimit": "20Mi"})"}),
      node.run(Node::Writer{.name = "layer-below", .size = "18Mi", .limit = "20Mi"})};

  const auto check_gone = [&](const std::string& pod, std::string_view limit, std::string_view message) {
    CAPTURE(pod);
    const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/" + pod, 60s);
    CHECK(intended.signal() == limit);
    CHECK(intended.message().contains(message));
    static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/" + pod, 60s));
  };
  constexpr auto of_pod = "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi.";
  check_gone("volume-over", "emptydirfs.limit", R"(Usage of EmptyDir volume "cache" exceeds the limit "20Mi".)");
  check_gone("pod-over", "ephemeralpodfs.limit", of_pod);
  check_gone("layer-over", "ephemeralpodfs.limit", of_pod);
  testbed::wait_until("the runtime has measured who stays", 60s,
                      [&] { return layers(node.testbed, stay.back().container()).bytes >= 18 * mebi; });
  wait_for_passes(agent, 10);
  for (const auto& pod : stay) {
    CAPTURE(pod.name);
    CHECK(node.testbed.cri().is_running(pod));
    CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/" + pod.name));
  }
}

}  // namespace integration::disk_test
