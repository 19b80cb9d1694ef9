#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "small_disk.hpp"
#include "stopped.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace integration::wake_files_test {

// Disk and inode pressure made by a writing pod wakes a pass long before the timer, which is at five minutes here.

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

/// A node with one pod, whose emptyDir lies with the kubelet's directories on a small disk.
struct Node {
  SmallDisk disk{{.bytes = 400 * mebi, .inodes = 6000}};
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};

  [[nodiscard]] std::filesystem::path volume(const std::string& pod) const {
    return disk.directory("kubelet/pods/" + pod + "-0000-1111/volumes/kubernetes.io~empty-dir/data");
  }
  /// `by`: fanotify, or inotify, which it is where evictd lacks CAP_SYS_ADMIN.
  [[nodiscard]] Agent guard(const std::string& thresholds, const std::string& by) {
    Agent::Options options{.thresholds = thresholds,
                           .kubelet = fmt::format("podLogsDir: {}\n", disk.directory("logs").native()),
                           .node = fmt::format("kubeletRoot: {}", disk.directory("kubelet").native()),
                           .notifier = "disable: [sampler], fallbackInterval: 5m"};
    if (by == "inotify") options.wrapper = {"setpriv", "--inh-caps=-sys_admin", "--bounding-set=-sys_admin", "--"};
    return {testbed, options};
  }
  testbed::RunningPod run(const std::string& name, std::vector<std::string> load) {
    const auto uid = name + "-0000-1111";
    testbed::PodSpec pod{.name = name, .uid = uid, .containers = {{.args = std::move(load)}}};
    pod.qos = QosClass::BestEffort;
    pod.containers[0].mounts.push_back({.host_path = volume(name), .container_path = "/data"});
    pod.annotations["evictd.io/pod-spec"] =
        R"({"containers": [{"name": "main"}], "volumes": [{"name": "data", "emptyDir": {}}]})";
    return testbed.cri().run_pod(pod);
  }
};

void create_files(const std::filesystem::path& directory, int count) {
  for (int i = 0; i < count; ++i) std::ofstream{directory / fmt::format("file-{}", i)};
}

void check_woken_by_files(const std::string& by) {
  CAPTURE(by);
  Node node;
  auto agent = node.guard(fmt::format("evictionHard: {{nodefs.inodesFree: '{}'}}", node.disk.free_inodes() - 1000), by);
  const auto files = [&] {
    const auto status = agent.status();
    const auto found =
        std::ranges::find_if(status.wake_sources(), [](const auto& source) { return source.name() == "files"; });
    REQUIRE(found != status.wake_sources().end());
    return *found;
  };
  const auto writer = node.run("writer", {"hold", "4Mi"});
  agent.wait_for_pods(1);  // a quick one could have written them all before its files are watched
  testbed::wait_until("its files are watched", 60s, [&] { return files().state() == "armed"; });
  CHECK(files().detail().starts_with(by));
  std::this_thread::sleep_for(1s);  // what its start changes in the image file system has been told
  create_files(node.volume("writer"), 2500);
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/writer", 60s);
  CHECK(intended.signal() == "nodefs.inodesFree");
  CHECK(files().wake_ups() > 0);
  CHECK(agent.events().wait_for(Event::THRESHOLD_CROSSED, "", 1s).wake().source() == "files");
}

}  // namespace

TEST_CASE("a pod that uses up inodes is noticed by its writing, through fanotify and through inotify") {
  check_woken_by_files("fanotify");
  check_woken_by_files("inotify");
}

TEST_CASE("more files are written than inotify has room to tell: what came meanwhile is watched all the same") {
  Node node;
  auto agent =
      node.guard(fmt::format("evictionHard: {{nodefs.inodesFree: '{}'}}", node.disk.free_inodes() - 1000), "inotify");
  const auto writer = node.run("writer", {"hold", "4Mi"});
  agent.wait_for_pods(1);
  const auto volume = node.volume("writer");
  const auto passes = agent.status().passes();  // before it stands still: it looks at once when it goes on
  {
    const integration::Stopped evictd{agent.process().pid()};
    const auto room = testbed::read_number("/proc/sys/fs/inotify/max_queued_events");
    for (std::int64_t i = 0; i < room; ++i) {  // each at least one event to create it and one to remove it
      const auto file = volume / fmt::format("brief-{}", i);
      std::ofstream{file};
      std::filesystem::remove(file);
    }
    std::filesystem::create_directory(volume / "late");
  }
  testbed::wait_until("it has looked", 60s, [&] { return agent.status().passes() > passes; });
  create_files(volume / "late", 2500);
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/writer", 60s);
  CHECK(intended.signal() == "nodefs.inodesFree");
}

}  // namespace integration::wake_files_test
