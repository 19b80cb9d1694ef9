#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/eviction_settings.hpp"
#include "core/filesystem_layout.hpp"
#include "core/observation.hpp"
#include "core/pod.hpp"
#include "core/usage.hpp"

namespace evictd::core {

/// Ties an answer to the action that asked for it. An answer that nobody waits for any more is ignored.
using RequestId = std::uint64_t;

/// What a victim still holds of memory, measured together with the node.
struct Releasing {
  std::string uid;
  std::int64_t bytes = 0;
};

/// The node's counters, read fresh: begins a pass.
struct NodeObserved {
  Observations observations;
  std::vector<Releasing> releasing{};
};

/// The pods on the node, as of now.
struct PodsChanged {
  PodListPtr pods;
};

/// The answer to ReadPodUsage; `usage[i]` belongs to the action's `pods[i]`. Absent: no stats.
struct PodsMeasured {
  RequestId request = 0;
  std::vector<std::optional<PodUsage>> usage;
  std::optional<Observations>
      fresh{};  ///< the node's counters read again after the pods': nobody goes if the shortage is over by then
};

/// The answer to ReclaimNode: what the node says after it.
struct NodeReclaimed {
  RequestId request = 0;
  Observations observations;
};

/// A pod goes for a reason of somebody else's. It is not to be chosen again, and its memory is on its way back.
struct PodDisplaced {
  PodPtr pod;
  Displacement displacement{};
  Duration grace_period{};
};

/// The wait for an evicted pod's cleanup is over.
struct CleanupEnded {
  std::string uid;
  bool released = true;  ///< false: timed out, the pod may still hold everything
};

/// The thresholds changed.
struct PolicyChanged {
  EvictionPolicy policy;
  std::size_t evictions_within_a_minute = 0;  ///< so many pods may go because of thresholds in the minute that begins
                                              ///< now; 0: no limit
};

struct LayoutDetected {
  FilesystemLayout layout;
};

/// Everything the state machine can be told.
using Event = std::variant<NodeObserved, PodsChanged, PodsMeasured, NodeReclaimed, PodDisplaced, CleanupEnded,
                           PolicyChanged, LayoutDetected>;

}  // namespace evictd::core
