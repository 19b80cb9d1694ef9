#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "guard.hpp"
#include "testbed/wait.hpp"

namespace kubernetes::report_test {

using namespace std::chrono_literals;
using evictd::v1::Event;
using testbed::Agent;

namespace {

constexpr std::int64_t mebi = 1 << 20;

Cluster::Options node_of_one_gibi() { return {.testbed = {.node = {.memory_limit = 1024 * mebi}}}; }

/// evictd with the account that is deployed, which reads pods and reports.
testbed::Agent::Options reporting(Cluster& cluster, const std::string& report) {
  return agent_options(
      cluster, "evictionHard: {memory.available: 250Mi}\n",
      fmt::format(
          "podSources: {{apiServer: true}}\n"
          "kubernetes: {{nodeName: {}, kubeconfig: \"{}\", report: {}, nodeConditions: taints, startSpread: 0s}}\n",
          node_name, evictd_kubeconfig(cluster).native(), report));
}

void wait_for_specs(Agent& agent) {
  testbed::wait_until("evictd has the API server's pods", 120s, [&] {
    const auto status = agent.status();
    return std::ranges::any_of(status.pod_sources(), [](const auto& source) {
      return source.name() == "apiServer" && source.state() == "synced" && source.pods() > 0;
    });
  });
}

/// Makes the hog grow until it is evicted.
void evict(Cluster& cluster, Agent& agent, const Hog& hog, const std::string& name) {
  hog.hold(900 * mebi);
  agent.events().wait_for(Event::CLEANUP_DONE, cluster.name_space() + "/" + name, 120s);
}

/// How many Events of evictd say that the pod was evicted.
std::size_t told(const Cluster& cluster, const std::string& pod) {
  const auto events = cluster.events_of("Pod", pod);
  std::size_t result = 0;
  for (std::size_t i = 0; i < events.size("/items"); ++i)
    if (events.at(fmt::format("/items/{}/reason", i)) == "Evicted" &&
        events.at(fmt::format("/items/{}/source/component", i)) == "evictd")
      ++result;
  return result;
}

bool says_evicted(const Answer& pod) {
  return pod.at("/status/phase") == "Failed" && pod.at("/status/reason") == "Evicted" &&
         pod.at("/status/message").starts_with("The node was low on resource: memory.");
}

bool is_a_disruption_target(const Answer& pod) {
  return pod.at("/status/conditions").find("DisruptionTarget") != std::string::npos;
}

}  // namespace

TEST_CASE("the hog of a cluster becomes Failed and Evicted, the kubelet leaves it dead, and a critical pod stays") {
  Cluster cluster{node_of_one_gibi()};
  Agent agent{cluster.testbed(), reporting(cluster, "status")};
  const auto vital =
      cluster.run({.name = "vital", .args = {"hold", "200Mi"}, .priority_class = "system-node-critical"});
  const Hog hog{cluster, "hog"};
  agent.wait_for_pods(2);
  wait_for_specs(agent);
  const History history{cluster, "hog"};

  evict(cluster, agent, hog, "hog");
  testbed::wait_until("the hog's object says that it was evicted", 60s,
                      [&] { return history.count(says_evicted) > 0; });
  testbed::wait_until("the Event of the eviction", 60s, [&] { return told(cluster, "hog") == 1; });
  testbed::wait_until("the node's taint", 60s, [&] {
    const auto node = cluster.admin().get(fmt::format("/api/v1/nodes/{}", node_name));
    return node.at("/spec/taints").find("node.kubernetes.io/memory-pressure") != std::string::npos;
  });
  // The kubelet writes what became of the container, and nothing else.
  testbed::wait_until("the kubelet has seen its end", 120s, [&] {
    return cluster.pod("hog").find("/status/containerStatuses/0/state/terminated").has_value();
  });
  const auto pod = cluster.pod("hog");
  CHECK(pod.at("/status/phase") == "Failed");
  CHECK(is_a_disruption_target(pod));
  CHECK(cluster.testbed().node().processes(hog.pod().cgroup).empty());
  CHECK(cluster.testbed().cri().is_running(vital));
  CHECK(std::ranges::count(agent.events().all(), Event::EVICTION_INTENDED, &Event::kind) == 1);
  // Written again only where the kubelet wrote over it.
  const auto reports = agent.status().cluster_reports();
  CHECK(reports.statuses() == 1 + reports.statuses_again());
  CHECK(reports.dropped() <= 1);
}

// This kubelet (1.20) writes its own status over any other.
TEST_CASE(
    "a kubelet that believes no status but its own is told a few times, then left to itself; the pods stay dead") {
  constexpr int hogs = 4;
  constexpr std::uint64_t most_writes = 6;
  Cluster cluster{node_of_one_gibi()};
  Agent agent{cluster.testbed(), reporting(cluster, "status")};
  std::vector<Hog> evicted;
  for (int i = 0; i < hogs; ++i) {
    const auto name = fmt::format("hog-{}", i);
    const auto& hog = evicted.emplace_back(cluster, name);
    agent.wait_for_pod(hog.pod().uid);
    if (i == 0) wait_for_specs(agent);
    evict(cluster, agent, hog, name);
  }
  testbed::wait_until("evictd gives them up", 120s, [&] { return agent.status().cluster_reports().dropped() == hogs; });
  const auto reports = agent.status().cluster_reports();
  MESSAGE(reports.statuses_again() << " of " << hogs << " statuses were written again");
  CHECK(reports.statuses() == hogs + reports.statuses_again());
  CHECK(reports.statuses() <= hogs * most_writes);
  CHECK(reports.waiting() == 0);
  for (const auto& hog : evicted) {
    CHECK(cluster.phase(hog.pod().name) == "Failed");
    CHECK(cluster.testbed().node().processes(hog.pod().cgroup).empty());
  }
  CHECK(std::ranges::count(agent.events().all(), Event::EVICTION_INTENDED, &Event::kind) == hogs);
}

TEST_CASE("with report: delete the object of a pod that would be restarted is gone, whatever the kubelet's version") {
  Cluster cluster{node_of_one_gibi()};
  allow_deletion(cluster);
  Agent agent{cluster.testbed(), reporting(cluster, "delete")};
  const Hog hog{cluster, "hog", "Always"};
  agent.wait_for_pods(1);
  wait_for_specs(agent);

  evict(cluster, agent, hog, "hog");
  testbed::wait_until("the hog's object is gone", 60s, [&] { return cluster.pod("hog").status == 404; });
  testbed::wait_until("the Event of the eviction", 60s, [&] { return told(cluster, "hog") == 1; });
  testbed::wait_until("nothing of it runs", 60s,
                      [&] { return cluster.testbed().node().processes(hog.pod().cgroup).empty(); });
}

TEST_CASE("an API server that is away hinders no eviction, and is told of it once when it is back") {
  Cluster cluster{node_of_one_gibi()};
  Agent agent{cluster.testbed(), reporting(cluster, "status")};
  const Hog hog{cluster, "hog"};
  agent.wait_for_pods(1);
  wait_for_specs(agent);

  cluster.control_plane().stop_api_server();
  evict(cluster, agent, hog, "hog");
  CHECK(agent.status().cluster_reports().waiting() > 0);
  cluster.control_plane().start_api_server();

  testbed::wait_until("the reports have arrived", 120s,
                      [&] { return agent.status().cluster_reports().waiting() == 0; });
  CHECK(is_a_disruption_target(cluster.pod("hog")));
  CHECK(told(cluster, "hog") == 1);
  const auto reports = agent.status().cluster_reports();
  CHECK(reports.statuses() == 1 + reports.statuses_again());
}

}  // namespace kubernetes::report_test
