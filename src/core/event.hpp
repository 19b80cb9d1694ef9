#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
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

/// The memory of a victim that the kernel will give back by itself, measured together with the node.
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
  /// By uid: those that no list names yet. What is known of them was inferred, so they may be critical.
  std::set<std::string, std::less<>> unlisted{};
};

/// The answer to ReadPodUsage; `usage[i]` belongs to the action's `pods[i]`. Absent: no stats.
struct PodsMeasured {
  RequestId request = 0;
  std::vector<std::optional<PodUsage>> usage;
  std::optional<Observations>
      fresh{};  ///< the node's counters read again after the pods': nobody goes if the shortage is over by then
  std::vector<bool> out_of_reach{};  ///< of which pods nothing can be said, because a disk does not answer: they are
                                     ///< not ranked, neither as pods without stats nor by what they held once
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

/// An evicted pod whose cleanup has ended runs again: a list of the runtime's that was asked for after that end has it
/// with a running container. From now on it is a pod like any other. To be told of no older list: that one may show the
/// pod as it ran before.
struct PodReturned {
  std::string uid;
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
                           PodReturned, PolicyChanged, LayoutDetected>;

}  // namespace evictd::core
