#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "admission/device.hpp"
#include "core/node.hpp"
#include "core/pod.hpp"
#include "core/threshold.hpp"

namespace evictd::admission {

/// What a node without an API server says of itself.
struct OwnNodeFacts {
  std::string name;
  std::string architecture{};     ///< in Go's words: "amd64"; "": what evictd was built for
  core::ResourceList capacity{};  ///< cpu, memory, ephemeral-storage (of the node's file system), hugepages-*
  core::ResourceList kube_reserved{};
  core::ResourceList system_reserved{};
  std::span<const core::Threshold> thresholds{};  ///< hard ones of memory and nodefs are kept free
  std::int64_t max_pods = 110;
  std::vector<Device> devices{};
  std::map<std::string, std::string, std::less<>> labels{};  ///< beside those that every node has, which they replace
  std::vector<core::Taint> taints{};
};

/// The node as a kubelet would describe it to an API server. Allocatable is the capacity without what is reserved and
/// without what the hard eviction thresholds keep free, never below 0; huge pages are no ordinary memory. (kubelet:
/// MachineInfo, GetNodeAllocatableReservation)
[[nodiscard]] core::Node own_node(const OwnNodeFacts& facts);

}  // namespace evictd::admission
