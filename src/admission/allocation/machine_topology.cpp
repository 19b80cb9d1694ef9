#include "admission/allocation/machine_topology.hpp"

#include <algorithm>
#include <utility>

namespace evictd::admission {
namespace {

constexpr int highest_numa_node = 63;  // affinities are masks of 64 bits, the kubelet's too
constexpr std::int64_t most_of_anything = 4096;
constexpr std::int64_t most_cpus = 65'536;

Result<void> check_numa_node(int id) {
  if (id >= 0 && id <= highest_numa_node) return {};
  return fail("NUMA node " + std::to_string(id) + " is not within 0 and " + std::to_string(highest_numa_node));
}

/// Whether each part lies within one whole: a core within a socket, say.
bool nests(const std::vector<LogicalCpu>& cpus, int LogicalCpu::* part, int LogicalCpu::* whole) {
  std::map<int, int> whole_of;
  return std::ranges::all_of(cpus, [&](const LogicalCpu& cpu) {
    return whole_of.try_emplace(cpu.*part, cpu.*whole).first->second == cpu.*whole;
  });
}

Result<void> check_cpus(const MachineTopology& topology, const NumaNodes& numa_nodes) {
  if (topology.cpus.empty()) return fail("the machine has no CPU");
  int previous = -1;
  for (const auto& cpu : topology.cpus) {
    const auto name = "CPU " + std::to_string(cpu.id);
    if (cpu.id < 0 || cpu.core < 0 || cpu.socket < 0 || cpu.uncore_cache < 0) return fail(name + ": a number below 0");
    if (cpu.id == previous) return fail(name + " is there twice");
    if (!numa_nodes.contains(cpu.numa_node))
      return fail(name + " lies on NUMA node " + std::to_string(cpu.numa_node) + ", which is not there");
    previous = cpu.id;
  }
  if (!nests(topology.cpus, &LogicalCpu::core, &LogicalCpu::socket)) return fail("a core lies in two sockets");
  if (!nests(topology.cpus, &LogicalCpu::core, &LogicalCpu::numa_node)) return fail("a core lies in two NUMA nodes");
  if (!nests(topology.cpus, &LogicalCpu::uncore_cache, &LogicalCpu::socket))
    return fail("an uncore cache lies in two sockets");
  return {};
}

Result<void> check_numa_nodes(const std::vector<NumaNode>& nodes) {
  int previous = -1;
  for (const auto& node : nodes) {
    const auto name = "NUMA node " + std::to_string(node.id);
    if (auto result = check_numa_node(node.id); !result) return result;
    if (node.id == previous) return fail(name + " is there twice");
    for (const auto& [resource, bytes] : node.memory)
      if (bytes < 0) return fail(name + " has less than no " + resource);
    previous = node.id;
  }
  return {};
}

int distance(const EvenMachine& machine, int from, int to) {
  if (from == to) return 10;
  return from / machine.numa_nodes_per_socket == to / machine.numa_nodes_per_socket ? 12 : 20;
}

Result<void> check_counts(const EvenMachine& machine) {
  std::int64_t cpus = 1;
  for (const auto& [what, number] : {std::pair{"sockets", machine.sockets},
                                     {"numaNodesPerSocket", machine.numa_nodes_per_socket},
                                     {"coresPerNumaNode", machine.cores_per_numa_node},
                                     {"threadsPerCore", machine.threads_per_core}}) {
    const std::int64_t count = number;
    if (count < 1 || count > most_of_anything)
      return fail(std::string(what) + " must be 1 to 4096, not " + std::to_string(count));
    cpus *= count;
    if (cpus > most_cpus) return fail("more than 65536 CPUs");
  }
  // Before they are made: every one has its distance to every other.
  if (machine.sockets * machine.numa_nodes_per_socket > highest_numa_node + 1)
    return check_numa_node(highest_numa_node + 1);
  const int caches = machine.uncore_caches_per_numa_node;
  if (caches < 1 || machine.cores_per_numa_node % caches != 0)
    return fail("the cores of a NUMA node do not divide evenly among its uncore caches");
  return {};
}

}  // namespace

CpuSet MachineTopology::all_cpus() const {
  CpuSet result;
  for (const auto& cpu : cpus) result.insert(cpu.id);
  return result;
}

NumaNodes MachineTopology::all_numa_nodes() const {
  NumaNodes result;
  for (const auto& node : numa_nodes) result.insert(node.id);
  return result;
}

Result<MachineTopology> make_topology(const EvenMachine& machine) {
  if (auto counted = check_counts(machine); !counted) return std::unexpected(counted.error());
  const int nodes = machine.sockets * machine.numa_nodes_per_socket;
  const int cores = nodes * machine.cores_per_numa_node;
  const int cores_per_cache = machine.cores_per_numa_node / machine.uncore_caches_per_numa_node;

  MachineTopology topology;
  for (int id = 0; id < cores * machine.threads_per_core; ++id) {
    const int core = id % cores;
    const int node = core / machine.cores_per_numa_node;
    topology.cpus.push_back({.id = id,
                             .core = core,
                             .socket = node / machine.numa_nodes_per_socket,
                             .numa_node = node,
                             .uncore_cache = core / cores_per_cache});
  }
  for (int id = 0; id < nodes; ++id) {
    NumaNode node{.id = id, .memory = machine.memory_per_numa_node};
    for (int other = 0; other < nodes; ++other) node.distances[other] = distance(machine, id, other);
    topology.numa_nodes.push_back(std::move(node));
  }
  return checked(std::move(topology));
}

Result<MachineTopology> checked(MachineTopology topology) {
  std::ranges::sort(topology.cpus);
  std::ranges::sort(topology.numa_nodes, {}, &NumaNode::id);
  if (auto nodes = check_numa_nodes(topology.numa_nodes); !nodes) return std::unexpected(nodes.error());
  if (auto cpus = check_cpus(topology, topology.all_numa_nodes()); !cpus) return std::unexpected(cpus.error());
  return topology;
}

}  // namespace evictd::admission
