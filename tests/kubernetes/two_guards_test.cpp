#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "guard.hpp"
#include "testbed/wait.hpp"

namespace kubernetes::two_guards_test {

using namespace std::chrono_literals;
using evictd::v1::Event;
using testbed::Agent;

namespace {

constexpr std::int64_t mebi = 1 << 20;
constexpr std::int64_t node_memory = 1024 * mebi;

/// A kubelet takes the whole machine for its node. By what is reserved it comes to guard the same memory as evictd:
/// that of the pods, which may be 1 GiB.
Cluster::Options one_gibi_for_pods() {
  const auto machine = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return {.testbed = {.node = {.memory_limit = node_memory}},
          .kubelet = {.configuration = fmt::format("evictionHard: {{memory.available: 100Mi}}\n"
                                                   "systemReserved: {{memory: \"{}\"}}\n",
                                                   machine - node_memory)}};
}

/// A kubelet tells of each pod that it evicts. So does evictd where it is asked to; here it is not.
bool kubelet_evicted(const Cluster& cluster, const std::string& pod) {
  const auto events = cluster.events_of("Pod", pod);
  for (std::size_t i = 0; i < events.size("/items"); ++i)
    if (events.at(fmt::format("/items/{}/reason", i)) == "Evicted") return true;
  return false;
}

}  // namespace

TEST_CASE("the kubelet alone evicts the hog, when its timer comes round") {
  Cluster cluster{one_gibi_for_pods()};
  const Hog hog{cluster, "hog"};
  // Its numbers of pods may be older than the hog's growth; then it takes this one first, which helps it little.
  cluster.create({.name = "bystander", .args = {"hold", "8Mi"}});
  hog.hold(940 * mebi);
  testbed::wait_until("the kubelet has evicted the hog", 180s, [&] { return kubelet_evicted(cluster, "hog"); });
  testbed::wait_until("the hog is Failed", 60s, [&] { return cluster.phase("hog") == "Failed"; });
  CHECK(cluster.pod("hog").at("/status/reason") == "Evicted");
}

TEST_CASE("kubelet and evictd together evict one pod, not two") {
  Cluster cluster{one_gibi_for_pods()};
  Agent agent{cluster.testbed(), agent_options(cluster, "evictionHard: {memory.available: 250Mi}\n")};
  const auto vital = cluster.run({.name = "vital", .args = {"hold", "64Mi"}, .priority_class = "system-node-critical"});
  const auto bystander = cluster.run({.name = "bystander", .args = {"hold", "64Mi"}});
  const Hog hog{cluster, "hog"};
  agent.wait_for_pods(3);

  hog.hold(900 * mebi);
  agent.events().wait_for(Event::CLEANUP_DONE, cluster.name_space() + "/hog", 120s);
  testbed::wait_until("the hog is Failed", 60s, [&] { return cluster.phase("hog") == "Failed"; });
  std::this_thread::sleep_for(21s);  // two of the periods after which the kubelet looks

  const auto events = agent.events().all();
  CHECK(std::ranges::count(events, Event::EVICTION_INTENDED, &Event::kind) == 1);
  for (const auto& pod : {"hog", "bystander", "vital"}) CHECK_FALSE(kubelet_evicted(cluster, pod));
  CHECK(cluster.testbed().cri().is_running(bystander));
  CHECK(cluster.testbed().cri().is_running(vital));
}

}  // namespace kubernetes::two_guards_test
