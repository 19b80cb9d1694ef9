#include "admission/allocation/cpu_manager.hpp"

#include <doctest/doctest.h>

#include "admission/number_list.hpp"
#include "fixture/machines.hpp"

namespace evictd::admission::cpu_manager_test {
namespace {

using fixture::error_of;
using fixture::guaranteed;
using fixture::pod;
using fixture::value_of;

CpuSet cpus(std::string_view list) { return value_of(parse_number_list(list)); }

std::unique_ptr<CpuManager> manager(const AllocationSettings& settings,
                                    TopologyPolicy policy = TopologyPolicy::BestEffort) {
  return value_of(CpuManager::make(settings, policy));
}

AllocationSettings settings(PolicyOptions options = {}) {
  auto result = fixture::all_static("best-effort");
  result.cpu_options = std::move(options);
  return result;
}

std::string why_not(const AllocationSettings& settings, TopologyPolicy policy = TopologyPolicy::None) {
  return error_of(CpuManager::make(settings, policy));
}

std::string print(const std::vector<Hint>& hints) {
  std::string text;
  for (const auto& hint : hints)
    text += (text.empty() ? "" : " ") + print_number_list(hint.affinity->nodes()) + (hint.preferred ? "!" : "");
  return text;
}

}  // namespace

TEST_CASE("without the static policy there is no CPU manager") {
  CHECK(value_of(CpuManager::make({}, TopologyPolicy::None)) == nullptr);
}

TEST_CASE("what keeps the kubelet's CPU manager from starting keeps this one") {
  auto wrong = settings();
  wrong.cpu_policy = "dynamic";
  CHECK(why_not(wrong) == "cpuManagerPolicy: unknown policy: \"dynamic\"");
  wrong = {.cpu_options = {{"full-pcpus-only", "true"}}};
  CHECK(why_not(wrong) == "cpuManagerPolicyOptions: None policy: received unsupported options (full-pcpus-only)");
  wrong = settings({{"full", "true"}});
  CHECK(why_not(wrong) == "cpuManagerPolicyOptions: unknown CPU Manager Policy option: \"full\"");
  wrong = settings();
  wrong.reserved.erase("cpu");
  CHECK(why_not(wrong) ==
        "cpuManagerPolicy: unable to determine reserved CPU resources for static policy: set reservedSystemCPUs, or "
        "cpu in kubeReserved "
        "or systemReserved");
  wrong.reserved["cpu"] = {};
  CHECK(why_not(wrong) ==
        "cpuManagerPolicy: the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero");
  wrong.reserved["cpu"] = fixture::quantity("17");
  CHECK(why_not(wrong) == "cpuManagerPolicy: unable to reserve the required amount of CPUs (17 of 16)");
  wrong = settings();
  wrong.reserved_cpus = cpus("0,15-17");
  CHECK(why_not(wrong) == "reservedSystemCPUs: 16-17 of 0,15-17 is not online (0-15)");
  wrong = settings();
  wrong.topology = {};
  CHECK(why_not(wrong) == "cpuManagerPolicy: the machine's topology is not known");
  CHECK(why_not(settings({{"align-by-socket", "true"}}), TopologyPolicy::SingleNumaNode) ==
        "cpuManagerPolicyOptions: the option align-by-socket is incompatible with the topology manager's policy "
        "single-numa-node");
  wrong = settings({{"align-by-socket", "true"}});
  for (auto& cpu : wrong.topology.cpus) cpu.numa_node = 0;
  CHECK(why_not(wrong) ==
        "cpuManagerPolicyOptions: the option align-by-socket is not compatible with hardware that has more sockets "
        "than NUMA nodes");
}

TEST_CASE("CPUs are divided among no more NUMA nodes than can be tried out") {
  auto wide = settings({{"distribute-cpus-across-numa", "true"}});
  wide.topology = value_of(make_topology({.sockets = 8, .cores_per_numa_node = 2}));
  CHECK(why_not(wide) == "no error");
  wide.topology = value_of(make_topology({.sockets = 9, .cores_per_numa_node = 2}));
  CHECK(why_not(wide) ==
        "cpuManagerPolicyOptions: distribute-cpus-across-numa: evictd divides CPUs among at most 8 NUMA nodes, and "
        "this machine has 9");
  wide.cpu_options.clear();
  CHECK(why_not(wide) == "no error");
}

TEST_CASE("so many CPUs are reserved as the system is to have, rounded up, from the lowest core on") {
  auto some = settings();
  for (const auto& [amount, expected] :
       {std::pair{"2", "0,8"}, {"1", "0"}, {"500m", "0"}, {"2001m", "0-1,8"}, {"16", "0-15"}}) {
    some.reserved["cpu"] = fixture::quantity(amount);
    CHECK(print_number_list(manager(some)->reserved()) == expected);
  }
  some.reserved_cpus = cpus("3,5");
  CHECK(print_number_list(manager(some)->reserved()) == "3,5");
  CHECK(print_number_list(manager(some)->reserved_cores()) == "3,5,11,13");
}

TEST_CASE("a container of a Guaranteed pod that requests whole CPUs has them alone") {
  const auto of_first = [](const core::Pod& pod) { return CpuManager::exclusive_cpus(pod, pod.containers[0]); };
  CHECK(of_first(pod("a", {guaranteed("main", "2", "1Gi")})) == 2);
  CHECK(of_first(pod("a", {guaranteed("main", "2000m", "1Gi")})) == 2);
  CHECK(of_first(pod("a", {guaranteed("main", "1500m", "1Gi")})) == 0);
  CHECK(of_first(pod("a", {guaranteed("main", "500m", "1Gi")})) == 0);
  CHECK(of_first(pod("a", {guaranteed("main", "2", "1Gi"), fixture::container("other")})) == 0);
  CHECK(of_first(pod("a", {fixture::container("main", {{"cpu", "2"}, {"memory", "1Gi"}})})) == 0);
  auto with_pod_level = pod("a", {guaranteed("main", "2", "1Gi")});
  with_pod_level.resources = with_pod_level.containers[0].resources;
  CHECK(of_first(with_pod_level) == 0);
}

TEST_CASE("hints name every set of nodes that has the CPUs, and prefer those no larger than the machine requires") {
  const auto some = manager(settings());
  CHECK(print(some->hints(cpus("1-7,9-15"), {}, 2)) == "0! 1! 0-1");
  CHECK(print(some->hints(cpus("1-7,9-15"), {}, 8)) == "1! 0-1");
  CHECK(print(some->hints(cpus("1-7,9-15"), {}, 9)) == "0-1!");
  CHECK(print(some->hints(cpus("1-3,4-6"), {}, 4)) == "0-1");
  CHECK(print(some->hints(cpus("1-3"), {}, 4)).empty());
  // What an init container had must lie within.
  CHECK(print(some->hints(cpus("2-7,9-15"), cpus("1"), 2)) == "0! 0-1");
  CHECK(print(some->hints(cpus("4-7"), cpus("1,12"), 2)) == "0-1");
}

TEST_CASE("NUMA nodes of one socket count as one where CPUs are aligned by socket") {
  auto with = settings({{"align-by-socket", "true"}});
  with.topology = value_of(
      make_topology({.sockets = 2, .numa_nodes_per_socket = 2, .cores_per_numa_node = 4, .threads_per_core = 1}));
  // Two CPUs of node 0 are taken, so that the first socket has six.
  CHECK(print(manager(with)->hints(cpus("2-15"), {}, 4)) ==
        "1! 0-1! 2! 0,2 1-2 0-2 3! 0,3 1,3 0-1,3 2-3! 0,2-3 1-3 0-3");
  CHECK(print_number_list(value_of(manager(with)->pick(cpus("2-15"), 6, NumaMask::of(1)))) == "2-7");
  with.cpu_options = {};
  CHECK(print(manager(with)->hints(cpus("2-15"), {}, 4)) == "1! 0-1 2! 0,2 1-2 0-2 3! 0,3 1,3 0-1,3 2-3 0,2-3 1-3 0-3");
}

TEST_CASE("CPUs of the affinity come first, then those that are left") {
  const auto some = manager(settings());
  CHECK(print_number_list(value_of(some->pick(cpus("1-7,9-15"), 2, NumaMask::of(1)))) == "4,12");
  CHECK(print_number_list(value_of(some->pick(cpus("1-5,9-12"), 4, NumaMask::of(1)))) == "1,4-5,12");
  CHECK(print_number_list(value_of(some->pick(cpus("1-7,9-15"), 2, std::nullopt))) == "1,9");
  CHECK(error_of(some->pick(cpus("1-3"), 4, NumaMask::of(0))) == "not enough cpus available to satisfy request");
}

TEST_CASE("everybody else shares what nobody has alone, the reserved CPUs too unless they are strict") {
  const Allocations allocations{{"a", {{"main", {.cpus = cpus("1-2,9")}}}}, {"b", {{"main", {.cpus = cpus("5")}}}}};
  CHECK(print_number_list(manager(settings())->shared_cpus(allocations)) == "0,3-4,6-8,10-15");
  CHECK(print_number_list(manager(settings({{"strict-cpu-reservation", "true"}}))->shared_cpus(allocations)) ==
        "3-4,6-7,10-15");
}

TEST_CASE("allocations that cannot be true are told") {
  const auto some = manager(settings());
  const auto wrong = [&](const char* a, const char* b) {
    return error_of(some->check({{"a", {{"main", {.cpus = cpus(a)}}}}, {"b", {{"main", {.cpus = cpus(b)}}}}}));
  };
  CHECK(wrong("1-2", "3") == "no error");
  CHECK(wrong("1-2", "2-3") == "CPU 2 of pod b belongs to pod a");
  CHECK(wrong("1", "16") == "CPU 16 of pod b is not there");
  CHECK(wrong("8", "2") == "CPU 8 of pod a is reserved");
  CHECK(some->check({{"a", {{"init", {.cpus = {1}}}, {"main", {.cpus = {1}}}}}}).has_value());
  CHECK(some->basis() ==
        std::map<std::string, std::string, std::less<>>{{"onlineCpus", "0-15"}, {"reservedCpus", "0,8"}});
}

}  // namespace evictd::admission::cpu_manager_test
