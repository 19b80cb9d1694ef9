#pragma once
#include <vector>

#include "admission/allocation/machine_topology.hpp"
#include "admission/chain.hpp"
#include "admission/device.hpp"
#include "config/kubelet_configuration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::config {

/// What is kept back for the kubelet and for the system, as a kubelet has it once it has started.
struct Reservations {
  core::ResourceList kube{};
  core::ResourceList system{};
};
/// The number of reservedSystemCPUs takes the place of what kubeReserved and systemReserved say of cpu; what is no list
/// of CPUs, with which no kubelet starts, does not. (kubelet: run)
[[nodiscard]] Reservations reservations(const KubeletConfiguration& kubelet);

/// What a node's KubeletConfiguration says to admission, on the machine and with the devices that the node has. Of a
/// machine without CPUs nothing is known, and nothing but devices is allocated. Error: "reservedSystemCPUs: …"; what
/// else may be wrong kubelet_chain finds.
[[nodiscard]] Result<admission::ChainSettings> chain_settings(const KubeletConfiguration& kubelet,
                                                              const admission::MachineTopology& topology,
                                                              const std::vector<admission::Device>& devices);

}  // namespace evictd::config
