#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admission/allocation/allocation_settings.hpp"
#include "admission/allocation/cpu_options.hpp"
#include "admission/allocation/hint.hpp"
#include "admission/allocation/machine_topology.hpp"
#include "admission/allocation/numa_mask.hpp"
#include "admission/allocation/provider.hpp"
#include "admission/allocation/topology_policy.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::admission {

/// cpuManagerPolicy static: a container of a Guaranteed pod that requests whole CPUs has them alone. Reserved CPUs are
/// never given away; everybody else shares them with what is left. Pods with pod-level resources get none.
class CpuManager final : public ResourceProvider {
 public:
  /// Nothing (a null pointer) with the policy none. An error is what keeps the kubelet from starting;
  /// it begins with the key that is at fault.
  [[nodiscard]] static Result<std::unique_ptr<CpuManager>> make(const AllocationSettings& settings,
                                                                TopologyPolicy topology_policy);

  [[nodiscard]] std::unique_ptr<Allocation> begin(const core::Pod& pod, const Allocations& others) const override;
  [[nodiscard]] Result<void> check(const Allocations& allocations) const override;
  [[nodiscard]] std::map<std::string, std::string, std::less<>> basis() const override;

  /// How many CPUs the container has alone; 0: it shares.
  [[nodiscard]] static int exclusive_cpus(const core::Pod& pod, const core::Container& container);
  /// Where containers without CPUs of their own run.
  [[nodiscard]] CpuSet shared_cpus(const Allocations& allocations) const;

  [[nodiscard]] const CpuOptions& options() const { return options_; }
  [[nodiscard]] const CpuSet& reserved() const { return reserved_; }
  /// With the other threads of their cores.
  [[nodiscard]] const CpuSet& reserved_cores() const { return reserved_cores_; }
  [[nodiscard]] int threads_per_core() const { return threads_per_core_; }

  /// Which NUMA nodes could give so many of the free CPUs beside all reusable ones.
  [[nodiscard]] std::vector<Hint> hints(const CpuSet& free, const CpuSet& reusable, int count) const;
  /// So many of the free ones, those near the affinity first.
  [[nodiscard]] Result<CpuSet> pick(const CpuSet& free, int count, const std::optional<NumaMask>& affinity) const;

 private:
  CpuManager(MachineTopology machine, CpuOptions options);
  [[nodiscard]] Result<void> check_options(TopologyPolicy topology_policy) const;
  [[nodiscard]] Result<void> reserve(const CpuSet& named, int count);
  [[nodiscard]] Result<CpuSet> take(const CpuSet& free, int count) const;
  [[nodiscard]] bool is_near(const LogicalCpu& cpu, NumaMask affinity) const;
  [[nodiscard]] bool keeps_sockets(NumaMask mask, int fewest_nodes) const;

  MachineTopology machine_;
  CpuOptions options_;
  CpuSet reserved_{};
  CpuSet reserved_cores_{};
  int threads_per_core_ = 1;
  NumaMask numa_nodes_{};  // those with CPUs
  int sockets_ = 1;
};

}  // namespace evictd::admission
