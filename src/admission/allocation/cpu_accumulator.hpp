#pragma once
#include <span>
#include <vector>

#include "admission/allocation/machine_topology.hpp"
#include "admission/pod_allocation.hpp"

namespace evictd::admission {

/// How one CPU is preferred to another.
struct CpuPreferences {
  bool spread_across_cores = false;    ///< whole cores are not looked for, threads are taken as they come
  bool align_by_uncore_cache = false;  ///< whole caches, or parts of one, before whole cores
};

/// Takes CPUs of a machine, the largest free unit that is needed first; of several the one that is used most already.
/// (kubelet: cpuAccumulator)
class CpuAccumulator {
 public:
  /// The machine must outlive this. `free` are those that may be taken.
  CpuAccumulator(const MachineTopology& machine, const CpuSet& free, int needed);

  [[nodiscard]] bool is_satisfied() const { return needed_ < 1; }
  [[nodiscard]] const CpuSet& taken() const { return taken_; }

  void take_whole_numa_nodes_and_sockets();
  void take_uncore_caches();
  void take_whole_cores();
  /// In the order of their cores, or socket by socket.
  void take_threads(bool spread);
  void take(const CpuSet& cpus);

  /// NUMA nodes with a free CPU, the fullest first.
  [[nodiscard]] std::vector<int> numa_nodes() const;
  [[nodiscard]] CpuSet free_in(int numa_node) const;

 private:
  using Level = int LogicalCpu::*;

  [[nodiscard]] std::vector<int> sorted(std::span<const Level> path) const;
  void descend(std::span<const Level> path, const std::vector<LogicalCpu>& within, std::vector<int>& result) const;
  [[nodiscard]] CpuSet free_at(Level level, int id) const;
  [[nodiscard]] bool is_whole(Level level, int id) const;
  void take_whole(std::span<const Level> path);
  void take_part_of_cache(int cache);

  const MachineTopology& machine_;
  std::vector<LogicalCpu> free_;
  int needed_;
  CpuSet taken_{};
  int threads_per_core_ = 1;
  bool numa_above_sockets_ = true;  // a NUMA node holds one socket or more, not the other way round
};

}  // namespace evictd::admission
