#pragma once
#include "admission/allocation/machine_topology.hpp"
#include "config/yaml.hpp"
#include "core/error.hpp"

namespace evictd::simulate {

/// The machine that a scenario's `node.topology` describes, in one of two ways:
///
///     {sockets: 2, numaNodesPerSocket: 1, coresPerNumaNode: 4, threadsPerCore: 2, memoryPerNumaNode: 8Gi}
///     {threadsPerCore: 2, numaNodes: [{cpus: "0-3,8-11", memory: 8Gi, hugepages: {2Mi: 1Gi}, distances: [10, 20]}, …]}
///
/// Of the CPUs of a NUMA node the first threads of all cores come first, then the second ones. Its socket is its own
/// unless `socket` names one.
[[nodiscard]] Result<admission::MachineTopology> read_topology(const config::Value& value);

}  // namespace evictd::simulate
