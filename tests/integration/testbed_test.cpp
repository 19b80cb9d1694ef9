#include "testbed/testbed.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/leftovers.hpp"
#include "testbed/wait.hpp"
#include "testbed/work_directory.hpp"
#include "traces.hpp"

namespace integration::testbed_test {

using namespace std::chrono_literals;
using namespace testbed;
using evictd::core::QosClass;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t MiB = 1 << 20;

/// What a container's cgroup is charged beyond its payload: the program itself, its stack, what the counters lag
/// behind.
constexpr std::int64_t overhead = 8 * MiB;

/// A pod whose memory is what the file `size` in the testbed's directory says.
PodSpec following_pod(const Testbed& bed, const std::string& name) {
  return {.name = name,
          .containers = {{.args = {"follow", "/node/size"}, .mounts = {{bed.directory(), "/node", true}}}}};
}

void wait_for_usage(Testbed& bed, const std::string& cgroup, std::int64_t bytes) {
  wait_until(fmt::format("{} uses {} MiB", cgroup, bytes / MiB), 60s, [&] {
    const auto usage = bed.node().memory_usage(cgroup);
    return usage >= bytes && usage < bytes + overhead;
  });
}

std::chrono::milliseconds time_of(const auto& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
}

/// The one process of a pod with one container that does not fork.
std::int64_t oom_score_adj_of(Testbed& bed, const RunningPod& pod) {
  const auto processes = bed.node().processes(pod.container_cgroup());
  REQUIRE(processes.size() == 1);
  return read_number("/proc/" + std::to_string(processes.front()) + "/oom_score_adj");
}

}  // namespace

TEST_CASE("a pod runs in its cgroup, and its memory is the node's") {
  Testbed bed({.node = {.memory_limit = 1024 * MiB}});
  CHECK(bed.node().memory_capacity() == 1024 * MiB);
  const auto before = bed.node().memory_usage();

  const auto pod = bed.cri().run_pod({.name = "chill", .containers = {{.args = {"hold", "64Mi"}}}});
  CHECK(pod.cgroup == bed.node().cgroup() + "/kubepods/burstable/pod" + pod.uid);
  wait_for_usage(bed, pod.container_cgroup(), 64 * MiB);
  CHECK(bed.node().memory_usage() >= before + 64 * MiB);
  CHECK(bed.node().processes(pod.cgroup).size() == 2);  // with the sandbox's
  CHECK(bed.cri().is_running(pod));
  CHECK(bed.cri().ready_pods() == std::vector<std::string>{"default/chill"});
}

TEST_CASE("a pod's memory follows a file, up and down") {
  Testbed bed;
  replace_file(bed.directory() / "size", "20Mi");
  const auto pod = bed.cri().run_pod(following_pod(bed, "seesaw"));
  wait_for_usage(bed, pod.container_cgroup(), 20 * MiB);
  for (const int size : {120, 40, 80, 0}) {
    replace_file(bed.directory() / "size", fmt::format("{}Mi", size));
    wait_for_usage(bed, pod.container_cgroup(), size * MiB);
  }
}

TEST_CASE("a pod grows from its start at its rate to its end") {
  Testbed bed;
  const auto grown = time_of([&] {
    const auto pod =
        bed.cri().run_pod({.name = "bloat", .containers = {{.args = {"grow", "20Mi", "100Mi/s", "220Mi"}}}});
    wait_for_usage(bed, pod.container_cgroup(), 220 * MiB);
    CHECK(bed.cri().is_running(pod));
  });
  CHECK(grown >= 1900ms);  // up to where the test's eyes count it as 220; a busy machine may take longer
}

TEST_CASE("pods outlive a killed containerd and are known to the next one") {
  Testbed bed;
  replace_file(bed.directory() / "size", "20Mi");
  const auto old = bed.cri().run_pod(following_pod(bed, "old"));

  bed.containerd().kill9();
  replace_file(bed.directory() / "size", "60Mi");
  wait_for_usage(bed, old.container_cgroup(), 60 * MiB);
  bed.containerd().start();

  CHECK(bed.cri().is_running(old));
  replace_file(bed.directory() / "size", "30Mi");
  wait_for_usage(bed, old.container_cgroup(), 30 * MiB);
  const auto fresh = bed.cri().run_pod({.name = "fresh", .containers = {{.args = {"hold", "1Mi"}}}});
  CHECK(bed.cri().ready_pods() == std::vector<std::string>{"default/fresh", "default/old"});

  bed.cri().stop(old, 10s);
  CHECK_FALSE(bed.cri().is_running(old));
  CHECK(bed.node().processes(old.cgroup).empty());
  bed.cri().remove(old);
  bed.containerd().stop();
  bed.containerd().start();
  CHECK(bed.cri().ready_pods() == std::vector<std::string>{"default/fresh"});
  CHECK(bed.cri().is_running(fresh));
}

TEST_CASE("a containerd that is not started yet has a socket to wait for") {
  Testbed bed({.start_containerd = false});
  CHECK_FALSE(fs::exists(bed.containerd().socket()));
  bed.containerd().start();
  CHECK(fs::exists(bed.containerd().socket()));
  CHECK(bed.cri().ready_pods().empty());
}

TEST_CASE("a containerd that cannot start says why") {
  Testbed bed({.start_containerd = false});
  write_file(bed.directory() / "config.toml", "version = nonsense");
  CHECK_THROWS_WITH_AS(bed.containerd().start(), doctest::Contains("config.toml"), Failure);
}

TEST_CASE("SIGTERM ends a container at once, or not at all where it is ignored") {
  Testbed bed;
  const auto polite = bed.cri().run_pod({.name = "polite", .containers = {{.args = {"hold", "1Mi"}}}});
  const auto stubborn =
      bed.cri().run_pod({.name = "stubborn", .containers = {{.args = {"--ignore-term", "hold", "1Mi"}}}});

  CHECK(time_of([&] { bed.cri().stop(polite, 300s); }) < 150s);
  CHECK(bed.cri().container_status(polite.container()).exit_code() == 0);
  CHECK(time_of([&] { bed.cri().stop(stubborn, 1s); }) >= 1s);
  CHECK(bed.cri().container_status(stubborn.container()).exit_code() == 128 + SIGKILL);
}

TEST_CASE("the QoS class and the request decide the cgroup and the oom_score_adj") {
  Testbed bed({.node = {.memory_limit = 1024 * MiB}});
  const auto run = [&](QosClass qos) {
    return bed.cri().run_pod({.name = "pod-" + std::to_string(static_cast<int>(qos)),
                              .qos = qos,
                              .containers = {{.args = {"hold", "1Mi"}, .memory_request = 256 * MiB}}});
  };
  const auto best_effort = run(QosClass::BestEffort);
  const auto burstable = run(QosClass::Burstable);
  const auto guaranteed = run(QosClass::Guaranteed);

  CHECK(best_effort.cgroup == bed.node().cgroup() + "/kubepods/besteffort/pod" + best_effort.uid);
  CHECK(burstable.cgroup == bed.node().cgroup() + "/kubepods/burstable/pod" + burstable.uid);
  CHECK(guaranteed.cgroup == bed.node().cgroup() + "/kubepods/pod" + guaranteed.uid);
  CHECK(oom_score_adj_of(bed, best_effort) == 1000);
  CHECK(oom_score_adj_of(bed, burstable) == 750);
  // restrict_oom_score_adj: never below containerd's own, which is ours.
  CHECK(oom_score_adj_of(bed, guaranteed) == std::max<std::int64_t>(-997, read_number("/proc/self/oom_score_adj")));
}

TEST_CASE("labels, annotations, priority and grace period are where the kubelet puts them") {
  Testbed bed;
  const auto pod =
      bed.cri().run_pod({.name = "vital",
                         .name_space = "kube-system",
                         .priority = 2'000'000'000,
                         .termination_grace_period = 7s,
                         .labels = {{"app", "vital"}},
                         .annotations = {{"kubernetes.io/config.source", "file"}},
                         .log_directory = bed.directory() / "logs",
                         .containers = {{.name = "talks", .command = {"sh", "-c", "echo hello; exec load pause"}},
                                        {.name = "second", .args = {"pause"}, .memory_limit = 64 * MiB}}});
  const auto sandbox = bed.cri().sandboxes().at(0);
  CHECK(sandbox.labels().at("app") == "vital");
  CHECK(sandbox.labels().at("io.kubernetes.pod.namespace") == "kube-system");
  CHECK(sandbox.annotations().at("kubernetes.io/config.source") == "file");
  CHECK(sandbox.annotations().at("evictd.io/priority") == "2000000000");

  const auto status = bed.cri().container_status(pod.container("talks"));
  CHECK(status.annotations().at("io.kubernetes.pod.terminationGracePeriod") == "7");
  CHECK(status.labels().at("io.kubernetes.pod.uid") == pod.uid);
  wait_until("the container's words are in its log", 60s, [&] {
    return try_read_file(bed.directory() / "logs/talks/0.log").value_or("").find("hello") != std::string::npos;
  });
  const auto limited = bed.node().memory_directory(pod.cgroup + "/" + pod.container("second"));
  CHECK(read_number(limited / (cgroup_host().v2 ? "memory.max" : "memory.limit_in_bytes")) == 64 * MiB);
}

TEST_CASE("pods can use up process numbers, bytes and inodes") {
  Testbed bed({.node = {.pids_limit = 200}});
  CHECK(read_number(bed.node().pids_directory() / "pids.max") == 200);
  fs::create_directory(bed.directory() / "disk");
  const std::vector<MountSpec> disk = {{.host_path = bed.directory() / "disk", .container_path = "/data"}};
  const auto forks = bed.cri().run_pod({.name = "forks", .containers = {{.args = {"fork", "20"}}}});
  const auto writes =
      bed.cri().run_pod({.name = "fills",
                         .containers = {{.name = "bytes", .args = {"write", "/data", "8Mi", "64Mi/s"}, .mounts = disk},
                                        {.name = "inodes", .args = {"inodes", "/data", "300"}, .mounts = disk}}});

  wait_until("20 children run beside their parent", 60s,
             [&] { return bed.node().processes(forks.container_cgroup()).size() == 21; });
  CHECK(read_number(bed.node().pids_directory() / "pids.current") >= 21);
  wait_until("the disk has 8 MiB and 300 files more", 60s, [&] {
    const auto files = std::distance(fs::directory_iterator(bed.directory() / "disk"), fs::directory_iterator{});
    std::error_code missing;
    return files == 301 && fs::file_size(bed.directory() / "disk/load.data", missing) == 8 * MiB;
  });
  CHECK(bed.cri().is_running(writes));
}

TEST_CASE("images that nobody uses can be added, each with bytes of its own") {
  Testbed bed;
  bed.containerd().import_image("evictd.test/unused:1", 4 * MiB);
  bed.containerd().import_image("evictd.test/unused:2", 4 * MiB);
  std::vector<std::string> ids;
  for (const auto& image : bed.cri().images()) {
    if (image.repo_tags_size() != 1 || !image.repo_tags(0).starts_with("evictd.test/unused")) continue;
    CHECK(image.size() >= 4 * MiB);
    ids.push_back(image.id());
  }
  REQUIRE(ids.size() == 2);
  CHECK(ids[0] != ids[1]);
}

TEST_CASE("containerd can keep its images and layers on another file system") {
  const WorkDirectory work;
  const auto disk = work.path() / "disk";
  fs::create_directory(disk);
  run({"mount", "-t", "tmpfs", "-o", "size=64m", "evictd-test", disk});
  {
    Testbed bed({.containerd = {.root = disk}});
    const auto pod = bed.cri().run_pod({.name = "chill", .containers = {{.args = {"hold", "1Mi"}}}});
    CHECK(bed.cri().is_running(pod));
    CHECK(fs::exists(disk / "containerd/io.containerd.snapshotter.v1.overlayfs"));
    CHECK_FALSE(fs::exists(bed.directory() / "root"));
  }
  CHECK_FALSE(fs::exists(disk / "containerd"));
  run({"umount", disk});  // nothing holds it any more
}

TEST_CASE("nothing remains of a testbed that goes, whatever still runs in it") {
  std::optional<integration::Traces> traces;
  {
    Testbed bed;
    const auto agent = bed.spawn({"sleep", "60"});
    const auto pod = bed.cri().run_pod({.name = "stubborn", .containers = {{.args = {"--ignore-term", "fork", "5"}}}});
    const auto stopped = bed.cri().run_pod({.name = "stopped", .containers = {{.args = {"hold", "1Mi"}}}});
    bed.cri().stop(stopped, 0s);
    bed.containerd().kill9();
    traces.emplace(bed);
    CHECK(traces->found().size() > 5);
  }
  CHECK(fmt::format("{}", fmt::join(traces->found(), "\n")) == "");
}

TEST_CASE("what a killed testbed left is swept, and what a living one needs is not") {
  Testbed living;
  const auto pod = living.cri().run_pod({.name = "living", .containers = {{.args = {"hold", "1Mi"}}}});

  Process killed({fs::read_symlink("/proc/self/exe"), "hold-testbed"});
  const auto said = [&] {
    const auto output = killed.output();
    const auto start = output.find("testbed /");
    const auto end = output.find('\n', start);
    return start == std::string::npos || end == std::string::npos ? "" : output.substr(start, end - start);
  };
  wait_until("the other testbed is up", 180s, [&] { return !said().empty(); });
  const auto line = said();
  const auto space = line.rfind(' ');
  const integration::Traces traces(line.substr(8, space - 8), line.substr(space + 1));
  const auto in_memory = "/dev/shm" / fs::path(line.substr(8, space - 8)).filename();  // as benches have one
  fs::create_directory(in_memory);
  killed.kill();
  CHECK(traces.found().size() > 5);

  remove_leftovers();
  CHECK_FALSE(fs::exists(in_memory));
  CHECK(fmt::format("{}", fmt::join(traces.found(), "\n")) == "");
  CHECK(living.cri().is_running(pod));
}

}  // namespace integration::testbed_test
