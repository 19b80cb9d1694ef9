#pragma once
#include <vector>

#include "admission/allocation/hint.hpp"
#include "admission/allocation/machine_topology.hpp"
#include "admission/allocation/numa_mask.hpp"

namespace evictd::admission {

/// What hints are merged by.
struct MergeRules {
  NumaMask all{};                      ///< the machine's NUMA nodes
  const MachineTopology* distances{};  ///< set: among masks of equal width the closest nodes win, not the lowest
};

/// The providers' hints as one list for each resource, never an empty one: who does not care takes any node, and what
/// cannot be had takes any node without liking it. (kubelet: filterProvidersHints)
[[nodiscard]] std::vector<std::vector<Hint>> hints_by_resource(const std::vector<ProviderHints>& providers);

/// The best of all ways to choose one hint for each resource. A choice's mask is what all its masks have in common, it
/// is preferred where all its hints are and all its masks are the same. Preferred beats not preferred, then the
/// narrowest wins; without a preferred one that which is as wide as the neediest resource wants it, then the widest
/// below, then the narrowest above. No choice that leaves a node: all of them, not preferred.
///
/// (kubelet: HintMerger, which tries every choice; the order above is total, so that it is enough to follow which masks
/// can come out: n·2^n steps for each resource, however many resources there are.)
[[nodiscard]] Hint merge(const std::vector<std::vector<Hint>>& hints, const MergeRules& rules);

}  // namespace evictd::admission
