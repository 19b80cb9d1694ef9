#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>

#include "cluster.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;
using kubernetes::Cluster;

TEST_CASE("the real kubelet runs a pod that the API server bound to it, in the node's cgroup") {
  Cluster cluster;
  const auto pod = cluster.run({.name = "chill", .args = {"hold", "32Mi"}, .resources = "requests: {memory: 64Mi}"});
  CHECK(pod.cgroup.starts_with(cluster.testbed().node().cgroup() + "/kubepods/burstable/"));
  CHECK(cluster.testbed().cri().is_running(pod));
  CHECK(cluster.testbed().node().processes(pod.container_cgroup()).size() == 1);
  CHECK(cluster.phase("chill") == "Running");

  cluster.remove_pod("chill");
  testbed::wait_until("the kubelet has stopped the pod", 120s,
                      [&] { return cluster.testbed().node().processes(pod.cgroup).empty(); });
}

TEST_CASE("nothing remains of a cluster that goes, and no sysctl of the machine has changed") {
  const auto sysctl = [] { return testbed::read_file("/proc/sys/vm/overcommit_memory"); };
  const auto before = sysctl();
  std::filesystem::path logs;
  std::filesystem::path directory;
  std::filesystem::path cgroup;
  {
    Cluster cluster;
    const auto pod = cluster.run({.name = "chill",
                                  .volumes = "{name: data, emptyDir: {medium: Memory}}",
                                  .mounts = "{name: data, mountPath: /data}"});
    CHECK(sysctl() == before);
    logs = "/var/log/pods/" + cluster.name_space() + "_chill_" + pod.uid;
    directory = cluster.testbed().directory();
    cgroup = cluster.testbed().node().memory_directory();
    CHECK(std::filesystem::exists(logs));
  }
  CHECK(sysctl() == before);
  CHECK_FALSE(std::filesystem::exists(logs));
  CHECK_FALSE(std::filesystem::exists(directory));
  CHECK_FALSE(std::filesystem::exists(cgroup));
}
