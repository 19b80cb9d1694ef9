#pragma once
#include <optional>
#include <variant>
#include <vector>

#include "core/observation.hpp"
#include "core/usage.hpp"

namespace evictd::core {

/// The answer to ReadPodUsage; `usage[i]` belongs to the action's `pods[i]`. Absent: no stats.
struct PodsMeasured {
  std::vector<std::optional<PodUsage>> usage;
  std::optional<Observations>
      fresh{};  ///< the node's counters read again after the pods': no pod is evicted if the shortage is over by then
  std::vector<bool> out_of_reach{};  ///< pods that cannot be measured, because a disk does not answer: they are
                                     ///< not ranked, neither as pods without stats nor by what they held once
};

/// The answer to ReclaimNode: what the node says after it.
struct NodeReclaimed {
  Observations observations;
};

/// What came of an action. The empty one belongs to the actions that ask for nothing; to a question it says that there
/// is no answer.
using Answer = std::variant<std::monostate, PodsMeasured, NodeReclaimed>;

}  // namespace evictd::core
