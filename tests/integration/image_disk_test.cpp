#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "disks.hpp"
#include "small_disk.hpp"
#include "testbed/agent.hpp"
#include "testbed/wait.hpp"

namespace integration::image_disk_test {

// Images have a disk of their own (imagefs), beside that of volumes and logs (nodefs). Writable layers lie with the
// images, where containerd keeps both.

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

std::int64_t capacity(const Agent& agent, std::string_view signal) {
  const auto status = agent.status();
  const auto found = std::ranges::find(status.signals(), signal, &evictd::v1::SignalStatus::signal);
  return found == status.signals().end() ? 0 : found->capacity();
}

struct Node {
  SmallDisk nodefs{{.bytes = 300 * mebi}};
  SmallDisk imagefs{{.bytes = 400 * mebi}};
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .containerd = {.root = imagefs.directory("containerd")}}};

  /// Returns once it knows that there are two disks. No image is too young to go.
  [[nodiscard]] Agent guard(const std::string& thresholds) {
    Agent agent{testbed,
                {.thresholds = thresholds,
                 .kubelet = fmt::format("podLogsDir: {}\nimageMinimumGCAge: -1s\n", nodefs.directory("logs").native()),
                 .node = fmt::format("kubeletRoot: {}", nodefs.directory("kubelet").native()),
                 .notifier = "fallbackInterval: 500ms"}};
    testbed::wait_until("the disks are known", 60s, [&] {
      const auto of_images = capacity(agent, "imagefs.available");
      return of_images > 0 && of_images != capacity(agent, "nodefs.available");
    });
    return agent;
  }

  testbed::RunningPod run(const std::string& name, std::vector<std::string> load) {
    return testbed.cri().run_pod(
        {.name = name, .qos = QosClass::BestEffort, .containers = {{.args = std::move(load)}}});
  }
  /// A pod that writes to its writable layer. Returns once the runtime has measured it.
  testbed::RunningPod run_in_layer(const std::string& name, std::int64_t bytes) {
    const auto pod = run(name, {"write", "/data", std::to_string(bytes), "200Mi/s"});
    testbed::wait_until("the runtime has measured " + name, 60s,
                        [&] { return layers(testbed, pod.container()).bytes >= bytes; });
    return pod;
  }
  /// A pod that writes to its emptyDir. Returns once all of it is written.
  testbed::RunningPod run_in_volume(const std::string& name, std::int64_t bytes) {
    const auto uid = name + "-0000-1111";
    const auto volume = nodefs.directory("kubelet/pods/" + uid + "/volumes/kubernetes.io~empty-dir/cache");
    testbed::PodSpec spec{.name = name, .uid = uid, .qos = QosClass::BestEffort};
    spec.annotations["evictd.io/pod-spec"] =
        R"({"containers": [{"name": "main"}], "volumes": [{"name": "cache", "emptyDir": {}}]})";
    spec.containers = {{.args = {"write", "/data", std::to_string(bytes), "200Mi/s"}}};
    spec.containers[0].mounts.push_back({.host_path = volume, .container_path = "/data"});
    const auto pod = testbed.cri().run_pod(spec);
    testbed::wait_until(name + " has written", 60s, [&] {
      std::error_code missing;
      const auto size = std::filesystem::file_size(volume / "load.data", missing);
      return !missing && static_cast<std::int64_t>(size) >= bytes;
    });
    return pod;
  }
};

}  // namespace

TEST_CASE("when the images' own disk fills up unused images and dead containers go, and no pod when that suffices") {
  Node node;
  node.testbed.containerd().import_image("evictd.test/unused:1", 60 * mebi);
  const auto dead = node.run("dead", {"hold", "4Mi"});
  node.testbed.cri().stop(dead, 0s);
  const auto busy = node.run("busy", {"hold", "4Mi"});
  auto agent = node.guard("evictionHard: {imagefs.available: 100Mi, nodefs.available: 1Mi}");
  agent.wait_for_pods(1);
  leave(node.imagefs, 90 * mebi);

  const auto reclaimed = agent.events().wait_for(Event::NODE_RECLAIMED, "", 60s);
  CHECK(reclaimed.signal() == "imagefs.available");
  CHECK(reclaimed.node_reclaimed().images_removed() >= 1);
  CHECK(reclaimed.node_reclaimed().containers_removed() >= 1);
  testbed::wait_until("the pressure is off", 30s, [&] { return node.imagefs.available() > 100 * mebi; });
  CHECK_FALSE(has_image(node.testbed, "evictd.test/unused:1"));
  CHECK(has_image(node.testbed, "evictd.test/load:1"));
  wait_for_passes(agent, 3);
  CHECK(node.testbed.cri().is_running(busy));
  CHECK(evicted(agent).empty());
}

TEST_CASE("when writable layers fill the images' disk the pod with the largest goes, whatever lies in volumes") {
  Node node;
  const auto volume = node.run_in_volume("volume", 80 * mebi);
  static_cast<void>(node.run_in_layer("layer", 50 * mebi));
  auto agent = node.guard("evictionHard: {imagefs.available: 100Mi}");
  agent.wait_for_pods(2);
  leave(node.imagefs, 80 * mebi);

  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/layer", 60s);
  CHECK(done.signal() == "imagefs.available");
  testbed::wait_until("its layer is given back", 30s, [&] { return node.imagefs.available() > 100 * mebi; });
  wait_for_passes(agent, 3);
  CHECK(evicted(agent) == std::vector<std::string>{"layer"});
  CHECK(node.testbed.cri().is_running(volume));
}

TEST_CASE("when volumes fill the other disk images stay, and the pod with the largest volume goes first") {
  Node node;
  node.testbed.containerd().import_image("evictd.test/unused:1", 1 * mebi);
  static_cast<void>(node.run_in_layer("layer", 80 * mebi));
  static_cast<void>(node.run_in_volume("volume", 50 * mebi));
  auto agent = node.guard("evictionHard: {nodefs.available: 100Mi}");
  agent.wait_for_pods(2);
  leave(node.nodefs, 80 * mebi);

  const auto done = agent.events().wait_for(Event::CLEANUP_DONE, "default/volume", 60s);
  CHECK(done.signal() == "nodefs.available");
  // No kubelet runs that would remove the volume: evictd has.
  testbed::wait_until("its volume is given back", 30s, [&] { return node.nodefs.available() > 100 * mebi; });
  wait_for_passes(agent, 3);
  CHECK(evicted(agent) == std::vector<std::string>{"volume"});
  CHECK(has_image(node.testbed, "evictd.test/unused:1"));
}

}  // namespace integration::image_disk_test
