#include "config/chain_settings.hpp"

#include <cstdint>
#include <utility>

#include "admission/allocation/allocation_settings.hpp"
#include "admission/allocation/machine_topology.hpp"
#include "admission/device.hpp"
#include "admission/node_reservation.hpp"
#include "admission/number_list.hpp"
#include "core/eviction_settings.hpp"
#include "core/pod.hpp"
#include "core/quantity.hpp"

namespace evictd::config {
namespace {

core::ResourceList capacity(const admission::MachineTopology& topology) {
  core::ResourceList result{{"cpu", core::Quantity::count(static_cast<std::int64_t>(topology.cpus.size()))}};
  for (const auto& node : topology.numa_nodes)
    for (const auto& [resource, bytes] : node.memory) result[resource] += core::Quantity::bytes(bytes);
  return result;
}

Result<admission::AllocationSettings> allocation_settings(const KubeletConfiguration& kubelet,
                                                          const admission::MachineTopology& topology) {
  auto reserved_cpus = admission::parse_number_list(kubelet.reserved_system_cpus);
  if (!reserved_cpus) return fail(reserved_cpus.error(), "reservedSystemCPUs");
  const auto policy = core::make_policy(kubelet.eviction);
  if (!policy) return std::unexpected(policy.error());

  admission::AllocationSettings settings{
      .topology_policy = kubelet.topology_manager_policy,
      .topology_scope = kubelet.topology_manager_scope,
      .topology_options = kubelet.topology_manager_policy_options,
      .cpu_policy = kubelet.cpu_manager_policy,
      .cpu_options = kubelet.cpu_manager_policy_options,
      .memory_policy = kubelet.memory_manager_policy,
      .topology = topology,
      .reserved = admission::node_reservation(capacity(topology), kubelet.kube_reserved, kubelet.system_reserved,
                                              policy->thresholds),
      .reserved_cpus = *std::move(reserved_cpus)};
  for (const auto& [numa_node, limits] : kubelet.reserved_memory)
    settings.reserved_memory.push_back({.numa_node = numa_node, .limits = limits});
  return settings;
}

}  // namespace

Reservations reservations(const KubeletConfiguration& kubelet) {
  Reservations result{.kube = kubelet.kube_reserved, .system = kubelet.system_reserved};
  const auto cpus = admission::parse_number_list(kubelet.reserved_system_cpus);
  if (!cpus || cpus->empty()) return result;
  result.kube.erase("cpu");
  result.system.insert_or_assign("cpu", core::Quantity::count(static_cast<std::int64_t>(cpus->size())));
  return result;
}

Result<admission::ChainSettings> chain_settings(const KubeletConfiguration& kubelet,
                                                const admission::MachineTopology& topology,
                                                const std::vector<admission::Device>& devices) {
  admission::ChainSettings settings{.allowed_unsafe_sysctls = kubelet.allowed_unsafe_sysctls};
  if (!topology.cpus.empty()) {
    auto allocation = allocation_settings(kubelet, topology);
    if (!allocation) return std::unexpected(allocation.error());
    settings.allocation = *std::move(allocation);
  }
  settings.allocation.devices = devices;
  return settings;
}

}  // namespace evictd::config
