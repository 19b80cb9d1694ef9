#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/duration.hpp"
#include "core/signal.hpp"
#include "evict/progress.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

/// What becomes of what a pod leaves on disk once it has stopped.
enum class Afterwards : std::uint8_t {
  keep,            ///< all of it stays: the machine goes down, and whoever starts the pod again may want it
  remove_volumes,  ///< its emptyDirs go, where that is evictd's part (pod_volumes_end.hpp); the program that started
                   ///< the pod removes the containers: a kubelet reads their status
  remove_all,      ///< its containers' writable layers as well: the node is short of what the pod holds on disk
};

/// What is short where a pod is to be killed at once because of a hard threshold on memory.
struct Shortage {
  core::Signal signal{};
  std::int64_t required = 0;   ///< bytes that are to be available: the threshold's value
  std::int64_t available = 0;  ///< bytes that were when the pod was chosen
  std::uint64_t intent = 0;    ///< the number of its EVICTION_INTENDED event
  std::string message{};       ///< one line: why this pod goes
};

/// Stops a pod and reports each step until nothing of it is left. On the reactor, which it never blocks.
class PodStopper {
 public:
  PodStopper() = default;
  PodStopper(const PodStopper&) = delete;
  PodStopper& operator=(const PodStopper&) = delete;
  virtual ~PodStopper() = default;

  /// `report` is called for every step as it happens, also before this returns; CleanupEnded comes last, once, and
  /// always within a deadline, unless this is called for the same pod again. `reached`: how far it has come, where an
  /// evictd before this one has begun it, and what the pod holds, so that this need not be read again; what was
  /// reported is not reported again. `shortage`: of a pod without a grace period, which may be held for a while before
  /// it is killed (held_end.hpp).
  virtual void begin(pods::RuntimePodPtr pod, core::Duration grace_period, Afterwards afterwards, Report report,
                     const std::optional<Reached>& reached, const std::optional<Shortage>& shortage) = 0;
  /// evictd is about to end: whoever is still held is killed now.
  virtual void hurry() {}
};

}  // namespace evictd::evict
