#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/eviction_settings.hpp"
#include "core/filesystem_layout.hpp"
#include "core/pod.hpp"

namespace evictd::core {

/// What comes back of a victim by itself, measured right before the node.
struct Releasing {
  std::string uid;
  std::int64_t bytes = 0;                   ///< of memory
  std::optional<std::int64_t> processes{};  ///< absent: unknown
  bool killed = true;                       ///< false: it may hold them while it has time, or nobody can kill it
};

/// The pods on the node, as of now.
struct PodsChanged {
  PodListPtr pods;
  /// By uid: those that no list names yet. What is known of them was inferred, so they may be critical.
  std::set<std::string, std::less<>> unlisted{};
};

/// A pod goes for another reason than a shortage. It is not to be chosen again, and its memory is on its way back.
struct PodDisplaced {
  PodPtr pod;
  Displacement displacement{};
  Duration grace_period{};
};

/// An evicted pod is held until it is killed (eviction.brake, eviction.hooks), or that is over. Meanwhile it may be who
/// holds or takes something else than memory.
struct PodHeld {
  std::string uid;
  bool held = true;
};

/// The wait for an evicted pod's cleanup is over.
struct CleanupEnded {
  std::string uid;
  bool released = true;        ///< false: timed out, the pod may still hold everything
  bool only_reported = false;  ///< nothing was done to the pod (ActingChanged), and the time for it is over
  bool killed = true;          ///< false: nothing of it could be killed
};

/// An evicted pod whose cleanup has ended runs again: a list of the runtime's that was asked for after that end has it
/// with a running container, or its cgroup has processes again before any list names it. From now on it is a pod like
/// any other. To be told of no older list: that one may show the pod as it ran before.
struct PodReturned {
  std::string uid;
};

/// From now on what is decided is done, or is only reported, but for what displaces pods. What was only reported never
/// happened once it is done again: those pods are there as before, none of them failed to go, and no limit counts them.
struct ActingChanged {
  bool acts = true;
};

/// The thresholds changed, or are to be gone by anew.
struct PolicyChanged {
  EvictionPolicy policy;
  /// So many pods may go because of thresholds in the minute that begins now; 0: no limit; absent: the one there is.
  std::optional<std::size_t> evictions_within_a_minute = 0;
};

/// It is known where images and writable layers lie. Before that no disk decides anything.
struct LayoutDetected {
  FilesystemLayout layout;
};

/// What can become known beside the answers to a pass.
using Event = std::variant<PodsChanged, PodDisplaced, PodHeld, CleanupEnded, PodReturned, ActingChanged, PolicyChanged,
                           LayoutDetected>;

}  // namespace evictd::core
