#include "simulate/scenario_topology.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::simulate::scenario_topology_test {
namespace {

using admission::MachineTopology;
using fixture::error_of;
using fixture::value_of;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

Result<MachineTopology> read(std::string_view text) {
  return read_topology(value_of(config::parse_yaml(text, "s.yaml")));
}

}  // namespace

TEST_CASE("a machine that is the same all over is told by counts") {
  CHECK(value_of(read("{sockets: 2, numaNodesPerSocket: 1, coresPerNumaNode: 2, threadsPerCore: 2, "
                      "memoryPerNumaNode: 4Gi, hugepagesPerNumaNode: {2Mi: 512Mi}}")) ==
        value_of(admission::make_topology({.sockets = 2,
                                           .numa_nodes_per_socket = 1,
                                           .cores_per_numa_node = 2,
                                           .threads_per_core = 2,
                                           .memory_per_numa_node = {{"memory", 4_GiB}, {"hugepages-2Mi", 512_MiB}}})));
  CHECK(value_of(read("{}")).all_cpus() == admission::CpuSet{0});
}

TEST_CASE("NUMA nodes may be told one by one, with the first threads of their cores before the second ones") {
  const auto machine = value_of(read(R"(
threadsPerCore: 2
numaNodes:
- {cpus: "0-1,4-5", memory: 4Gi, hugepages: {1Gi: 1Gi}, distances: [10, 21]}
- {id: 3, socket: 0, cpus: "2-3,6-7", memory: 2Gi, uncoreCaches: 2, distances: [21, 10]}
)"));
  REQUIRE(machine.cpus.size() == 8);
  CHECK(machine.cpus[1] == admission::LogicalCpu{.id = 1, .core = 1, .socket = 0, .numa_node = 0, .uncore_cache = 0});
  CHECK(machine.cpus[4] == admission::LogicalCpu{.id = 4, .core = 0, .socket = 0, .numa_node = 0, .uncore_cache = 0});
  CHECK(machine.cpus[7] == admission::LogicalCpu{.id = 7, .core = 3, .socket = 0, .numa_node = 3, .uncore_cache = 3});
  REQUIRE(machine.numa_nodes.size() == 2);
  CHECK(machine.numa_nodes[0].memory.at("memory") == 4_GiB);
  CHECK(machine.numa_nodes[0].memory.at("hugepages-1Gi") == 1_GiB);
  CHECK(machine.numa_nodes[1].id == 3);
  CHECK(machine.numa_nodes[0].distances == std::map<int, int>{{0, 10}, {3, 21}});
}

TEST_CASE("a machine that cannot be is one line that names the place") {
  CHECK(error_of(read("{socket: 1}")) == "s.yaml:1: socket: unknown key; did you mean \"sockets\"?");
  CHECK(error_of(read("{sockets: 0}")) == "s.yaml:1: sockets must be 1 to 4096, not 0");
  CHECK(error_of(read("{sockets: 1, numaNodes: []}")) ==
        "s.yaml:1: numaNodes says all; only threadsPerCore stands beside it");
  CHECK(error_of(read("numaNodes: []")) == "s.yaml:1: numaNodes: the machine has no CPU");
  CHECK(error_of(read("numaNodes:\n- {cpus: 0-2}\nthreadsPerCore: 2")) ==
        "s.yaml:2: numaNodes[0]: 3 CPUs are no whole cores of 2 threads");
  CHECK(error_of(read("numaNodes:\n- {cpus: 0-2, uncoreCaches: 2}")) ==
        "s.yaml:2: numaNodes[0]: 3 cores do not divide among 2 caches");
  CHECK(error_of(read("numaNodes:\n- {cpus: x}")) ==
        "s.yaml:2: numaNodes[0].cpus: \"x\" is no list of numbers such as 0-3,8");
  CHECK(error_of(read("numaNodes:\n- {cpus: 0, distances: [10, 20]}")) ==
        "s.yaml:2: numaNodes[0]: 2 distances for 1 NUMA nodes");
  CHECK(error_of(read("numaNodes:\n- {cpus: 0}\n- {cpus: 0, socket: 0}")) ==
        "s.yaml:1: numaNodes: CPU 0 is there twice");
}

}  // namespace evictd::simulate::scenario_topology_test
