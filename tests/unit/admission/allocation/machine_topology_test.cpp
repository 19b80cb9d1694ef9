#include "admission/allocation/machine_topology.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"

namespace evictd::admission::machine_topology_test {

using fixture::error_of;
using fixture::value_of;

TEST_CASE("an even machine numbers its CPUs first thread by first thread") {
  const auto topology = value_of(make_topology({.sockets = 2,
                                                .numa_nodes_per_socket = 2,
                                                .cores_per_numa_node = 2,
                                                .threads_per_core = 2,
                                                .memory_per_numa_node = {{"memory", 100}, {"hugepages-2Mi", 10}}}));
  CHECK(topology.all_cpus().size() == 16);
  CHECK(topology.all_numa_nodes() == NumaNodes{0, 1, 2, 3});
  CHECK(topology.cpus[3] == LogicalCpu{.id = 3, .core = 3, .socket = 0, .numa_node = 1, .uncore_cache = 1});
  CHECK(topology.cpus[11] == LogicalCpu{.id = 11, .core = 3, .socket = 0, .numa_node = 1, .uncore_cache = 1});
  CHECK(topology.cpus[15] == LogicalCpu{.id = 15, .core = 7, .socket = 1, .numa_node = 3, .uncore_cache = 3});
  CHECK(topology.numa_nodes[1].distances == std::map<int, int>{{0, 12}, {1, 10}, {2, 20}, {3, 20}});
  CHECK(topology.numa_nodes[3].memory.at("hugepages-2Mi") == 10);
}

TEST_CASE("a node's cores are shared out among its caches") {
  const auto topology = value_of(make_topology({.cores_per_numa_node = 4, .uncore_caches_per_numa_node = 2}));
  CHECK(topology.cpus[1].uncore_cache == 0);
  CHECK(topology.cpus[2].uncore_cache == 1);
  CHECK(error_of(make_topology({.cores_per_numa_node = 4, .uncore_caches_per_numa_node = 3})) ==
        "the cores of a NUMA node do not divide evenly among its uncore caches");
}

TEST_CASE("no machine has nothing, or more than any machine") {
  CHECK(error_of(make_topology({.sockets = 0})) == "sockets must be 1 to 4096, not 0");
  CHECK(error_of(make_topology({.cores_per_numa_node = 4097})) == "coresPerNumaNode must be 1 to 4096, not 4097");
  CHECK(error_of(make_topology({.sockets = 4096, .cores_per_numa_node = 4096})) == "more than 65536 CPUs");
  CHECK(error_of(make_topology({.sockets = 65})) == "NUMA node 64 is not within 0 and 63");
  // Its nodes would have four billion distances.
  CHECK(error_of(make_topology({.sockets = 4096, .numa_nodes_per_socket = 16})) ==
        "NUMA node 64 is not within 0 and 63");
}

TEST_CASE("a topology from outside is sorted, and told what is wrong with it") {
  const LogicalCpu first{.id = 0};
  const LogicalCpu second{.id = 1, .core = 1};
  const auto with = [](std::vector<LogicalCpu> cpus) {
    return checked({.cpus = std::move(cpus), .numa_nodes = {{.id = 1}, {.id = 0}}});
  };
  const auto sorted = value_of(with({second, first}));
  CHECK(sorted.cpus == std::vector{first, second});
  CHECK(sorted.numa_nodes.front().id == 0);

  CHECK(error_of(with({})) == "the machine has no CPU");
  CHECK(error_of(with({first, first})) == "CPU 0 is there twice");
  CHECK(error_of(with({{.id = 3, .socket = -1}})) == "CPU 3: a number below 0");
  CHECK(error_of(with({{.id = 3, .numa_node = 2}})) == "CPU 3 lies on NUMA node 2, which is not there");
  CHECK(error_of(with({first, {.id = 1, .core = 0, .socket = 1}})) == "a core lies in two sockets");
  CHECK(error_of(with({first, {.id = 1, .core = 0, .numa_node = 1}})) == "a core lies in two NUMA nodes");
  CHECK(error_of(with({first, {.id = 1, .core = 1, .socket = 1}})) == "an uncore cache lies in two sockets");
  CHECK(error_of(checked({.cpus = {first}, .numa_nodes = {{.id = 0}, {.id = 0}}})) == "NUMA node 0 is there twice");
  CHECK(error_of(checked({.cpus = {first}, .numa_nodes = {{.id = 0, .memory = {{"memory", -1}}}}})) ==
        "NUMA node 0 has less than no memory");
}

}  // namespace evictd::admission::machine_topology_test
