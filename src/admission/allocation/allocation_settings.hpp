#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "admission/allocation/machine_topology.hpp"
#include "admission/device.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::admission {

/// What is kept back for the system on one NUMA node (reservedMemory).
struct NumaReservation {
  int numa_node = 0;
  core::ResourceList limits{};  ///< "memory", "hugepages-2Mi", …
};

using PolicyOptions = std::map<std::string, std::string, std::less<>>;

/// What the node's configuration says about resources that containers have for themselves. Names are the kubelet's; the
/// defaults are, too, and cost nothing.
struct AllocationSettings {
  std::string topology_policy = "none";
  std::string topology_scope = "container";
  PolicyOptions topology_options{};
  std::string cpu_policy = "none";
  PolicyOptions cpu_options{};
  std::string memory_policy = "None";

  /// May be empty while no policy but that for devices is on.
  MachineTopology topology{};
  /// What pods are not to have (kubeReserved + systemReserved, of memory also the hard eviction threshold).
  core::ResourceList reserved{};
  CpuSet reserved_cpus{};  ///< reservedSystemCPUs: these and no others; their number replaces `reserved`'s
  std::vector<NumaReservation> reserved_memory{};

  std::vector<Device> devices{};
};

/// An option's truth value as Go reads it: 1, t, T, true, TRUE, True and their opposites; else `bad value for option
/// "NAME"`.
[[nodiscard]] Result<bool> parse_option(std::string_view name, std::string_view value);

}  // namespace evictd::admission
