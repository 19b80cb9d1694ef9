#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "admission/allocation/allocation_settings.hpp"
#include "admission/allocation/cpu_manager.hpp"
#include "admission/allocation/device_manager.hpp"
#include "admission/allocation/hint_merge.hpp"
#include "admission/allocation/machine_topology.hpp"
#include "admission/allocation/provider.hpp"
#include "admission/allocation/topology_policy.hpp"
#include "admission/plugin_devices.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::admission {

/// Gives containers devices, CPUs and memory of their own, as the topology policy wants them to lie together. It keeps
/// nothing but the settings: what is free follows from the allocations it is shown. (kubelet: topologymanager)
class ResourceAllocator {
 public:
  /// What keeps the kubelet from starting is an error that names the key: `cpuManagerPolicy: unknown policy: "x"`.
  [[nodiscard]] static Result<ResourceAllocator> make(const AllocationSettings& settings);

  /// What the pod's containers are given beside all others, or why it cannot be. A pod that has something already is
  /// given the same, so that a container made anew keeps what it had. Nothing is recorded. `plugins`: whose devices
  /// there are beside those of the settings.
  [[nodiscard]] std::expected<PodAllocation, Refusal> allocate(const core::Pod& pod, const Allocations& allocations,
                                                               const PluginDevices& plugins = {}) const;

  /// Where containers without CPUs of their own run: all CPUs that no container has alone. Empty where no policy hands
  /// out CPUs; they run anywhere then.
  [[nodiscard]] CpuSet shared_cpus(const Allocations& allocations) const;

  /// Whether allocations from outside can be true on this machine; the error names pod and resource.
  [[nodiscard]] Result<void> check(const Allocations& allocations) const;

  /// What allocations rest upon, as text by key: policies, the machine, what is reserved. Allocations made on another
  /// basis are worthless. (kubelet: what cpu_manager_state and memory_manager_state are checked against)
  using Basis = std::map<std::string, std::string, std::less<>>;
  [[nodiscard]] Basis basis() const;

 private:
  ResourceAllocator() = default;

  using AllocationsUnderWay = std::vector<std::unique_ptr<Allocation>>;
  [[nodiscard]] std::expected<void, Refusal> walk(const core::Pod& pod, AllocationsUnderWay& rounds) const;
  [[nodiscard]] std::expected<PodAllocation, Refusal> keep(const core::Pod& pod, const PodAllocation& held) const;
  [[nodiscard]] MergeRules rules() const;

  std::string cpu_policy_;
  std::string memory_policy_;
  TopologyPolicy policy_ = TopologyPolicy::None;
  TopologyScope scope_ = TopologyScope::Container;
  bool prefer_closest_ = false;
  MachineTopology machine_{};
  std::shared_ptr<const DeviceManager> devices_{};                    // also among the providers
  std::shared_ptr<const CpuManager> cpus_{};                          // also among the providers, if there is one
  std::vector<std::shared_ptr<const ResourceProvider>> providers_{};  // in the kubelet's order
};

/// Gives back what pods had that are neither these nor coming; whether there was any. (kubelet: removeStaleState)
bool release_all_but(const core::PodList& pods, Allocations& allocations, const Coming& coming = {});

}  // namespace evictd::admission
