#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "admission/pod_allocation.hpp"
#include "core/error.hpp"

namespace evictd::admission {

/// A logical CPU and where it lies. All numbers are 0 or more and unique in the machine, not only within the level
/// above; those of cores and uncore caches need not be the kernel's.
struct LogicalCpu {
  int id = 0;            ///< the kernel's
  int core = 0;          ///< the lowest CPU of its core, as the kubelet names cores
  int socket = 0;        ///< the kernel's physical package
  int numa_node = 0;     ///< the kernel's
  int uncore_cache = 0;  ///< the last-level cache that it shares; of machines without one: the socket

  friend auto operator<=>(const LogicalCpu&, const LogicalCpu&) = default;
};

/// A NUMA node: its memory, and how far the others are.
struct NumaNode {
  int id = 0;
  /// Bytes by resource: "memory" is all that the node has, huge pages included; "hugepages-2Mi" and the like are what
  /// is set aside for pages of that size.
  std::map<std::string, std::int64_t, std::less<>> memory{};
  /// By the other's id, itself included, as the firmware tells it: 10 is local. Empty: unknown.
  std::map<int, int> distances{};

  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

/// What allocation knows of the machine: its CPUs that are online, ascending by id, and its NUMA nodes, ascending by
/// id. A machine without NUMA is one node 0.
struct MachineTopology {
  std::vector<LogicalCpu> cpus{};
  std::vector<NumaNode> numa_nodes{};

  [[nodiscard]] CpuSet all_cpus() const;
  [[nodiscard]] NumaNodes all_numa_nodes() const;

  friend bool operator==(const MachineTopology&, const MachineTopology&) = default;
};

/// A machine that is the same all over, for simulations and tests.
struct EvenMachine {
  int sockets = 1;
  int numa_nodes_per_socket = 1;
  int cores_per_numa_node = 1;
  int threads_per_core = 1;
  int uncore_caches_per_numa_node = 1;
  /// Bytes of every NUMA node by resource, as in NumaNode::memory.
  std::map<std::string, std::int64_t, std::less<>> memory_per_numa_node{};
};

/// CPUs are numbered as most firmware does it: first the first thread of every core, socket by socket, then the second
/// ones. Distances are 10 within a node, 12 within a socket and 20 beyond it. Counts must be 1 to 4096 each and no more
/// than 65536 CPUs together; a node's cores must divide evenly among its caches.
[[nodiscard]] Result<MachineTopology> make_topology(const EvenMachine& machine);

/// What is wrong with a topology from outside: a number below 0 or twice, a CPU on a NUMA node that is not there, a
/// core or cache that lies in two sockets, no CPU at all, NUMA nodes above 63. Sorts CPUs and nodes.
[[nodiscard]] Result<MachineTopology> checked(MachineTopology topology);

}  // namespace evictd::admission
