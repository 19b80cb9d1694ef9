#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>

#include "cluster.hpp"
#include "guard.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/leftovers.hpp"
#include "testbed/process_table.hpp"
#include "testbed/wait.hpp"

namespace kubernetes::pod_test {

using namespace std::chrono_literals;

namespace {

/// "name value" lines.
std::map<std::string, std::string> facts_in(const std::string& output) {
  std::map<std::string, std::string> facts;
  std::istringstream lines(output);
  for (std::string name, value; lines >> name >> value;) facts[name] = value;
  return facts;
}

void kill_processes(Cluster& cluster, const testbed::RunningPod& pod) {
  for (const auto pid : cluster.testbed().node().processes(pod.container_cgroup())) ::kill(pid, SIGKILL);
}

}  // namespace

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

// What evictd's reports are up against. Newer kubelets keep a terminal phase, its reason and its message; this one,
// where the pod may be restarted, keeps or overwrites even the phase, as it happens.
TEST_CASE("of a status that somebody else wrote the kubelet keeps the conditions, not reason and message") {
  Cluster cluster;
  const auto pod = cluster.run({.name = "hog", .args = {"hold", "8Mi"}});
  const History history{cluster, "hog"};
  const auto patched = cluster.admin().patch(cluster.pod_path("hog") + "/status", R"({"status": {
    "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}]}})",
                                             "application/strategic-merge-patch+json");
  CHECK(patched.at("/status/reason") == "Evicted");
  kill_processes(cluster, pod);

  testbed::wait_until("the kubelet has written what became of the container", 120s, [&] {
    return cluster.pod("hog").find("/status/containerStatuses/0/state/terminated").has_value();
  });
  const auto after = cluster.pod("hog");
  CHECK(after.at("/status/phase") == "Failed");
  CHECK(after.at("/status/conditions").find("DisruptionTarget") != std::string::npos);
  CHECK_FALSE(after.find("/status/reason").has_value());
  CHECK_FALSE(after.find("/status/message").has_value());
  CHECK(history.count([](const Answer& seen) { return seen.at("/status/reason") == "Evicted"; }) >= 1);
  testbed::wait_until("the pod has no processes", 60s,
                      [&] { return cluster.testbed().node().processes(pod.cgroup).empty(); });
}

TEST_CASE("what a killed cluster left is swept") {
  testbed::Process killed({std::filesystem::read_symlink("/proc/self/exe"), "hold"});
  testbed::wait_until("the other cluster is up", 300s, [&] {
    if (!killed.running()) testbed::fail("the other cluster: " + killed.errors());
    return facts_in(killed.output()).contains("pod-logs");
  });
  const auto facts = facts_in(killed.output());
  killed.kill();
  const std::filesystem::path work = facts.at("directory");
  const auto control_plane = std::filesystem::path(facts.at("authority")).parent_path();
  const auto cgroup = testbed::cgroup_host().memory / facts.at("cgroup").substr(1);
  for (const auto& place : {work, control_plane, cgroup, std::filesystem::path(facts.at("pod-logs"))})
    CHECK(std::filesystem::exists(place));
  CHECK(testbed::marked_processes(work).size() > 2);
  CHECK(testbed::marked_processes(control_plane).size() == 2);

  testbed::remove_leftovers();
  remove_left_pod_logs();
  for (const auto& place : {work, control_plane, cgroup, std::filesystem::path(facts.at("pod-logs"))})
    CHECK_FALSE(std::filesystem::exists(place));
  CHECK(testbed::marked_processes(work).empty());
  CHECK(testbed::marked_processes(control_plane).empty());
}

}  // namespace kubernetes::pod_test
