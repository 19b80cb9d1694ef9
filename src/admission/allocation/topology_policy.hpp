#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "admission/allocation/hint.hpp"
#include "admission/allocation/hint_merge.hpp"
#include "core/error.hpp"

namespace evictd::admission {

/// How much a pod's resources must lie together (topologyManagerPolicy).
enum class TopologyPolicy : std::uint8_t {
  None,            ///< hints are not asked for
  BestEffort,      ///< as well as it can be
  Restricted,      ///< on as few NUMA nodes as there can be, or the pod is rejected
  SingleNumaNode,  ///< on one
};
/// For what it must hold (topologyManagerScope).
enum class TopologyScope : std::uint8_t { Container, Pod };

/// By the kubelet's names; unknown ones are errors: `unknown policy: "x"`, `invalid scope name: "x"`.
[[nodiscard]] Result<TopologyPolicy> parse_topology_policy(std::string_view name);
[[nodiscard]] Result<TopologyScope> parse_topology_scope(std::string_view name);

struct TopologyDecision {
  Hint hint{};  ///< where to allocate
  bool admitted = false;
};

/// What the policy makes of the providers' hints; with None any place is right. (kubelet: Policy.Merge)
[[nodiscard]] TopologyDecision decide(TopologyPolicy policy, const std::vector<ProviderHints>& providers,
                                      const MergeRules& rules);

}  // namespace evictd::admission
