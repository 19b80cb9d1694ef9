#pragma once
#include <vector>

#include "admission/allocation/machine_topology.hpp"
#include "admission/chain.hpp"
#include "admission/device.hpp"
#include "config/kubelet_configuration.hpp"
#include "core/error.hpp"

namespace evictd::config {

/// What a node's KubeletConfiguration says to admission, on the machine and with the devices that the node has. Of a
/// machine without CPUs nothing is known, and nothing but devices is allocated. Error: "reservedSystemCPUs: …"; what
/// else may be wrong kubelet_chain finds.
[[nodiscard]] Result<admission::ChainSettings> chain_settings(const KubeletConfiguration& kubelet,
                                                              const admission::MachineTopology& topology,
                                                              const std::vector<admission::Device>& devices);

}  // namespace evictd::config
