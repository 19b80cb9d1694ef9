#pragma once
#include <cstdint>
#include <optional>

#include "core/duration.hpp"
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

/// Stops a pod and reports each step until nothing of it is left. On the reactor, which it never blocks.
class PodStopper {
 public:
  PodStopper() = default;
  PodStopper(const PodStopper&) = delete;
  PodStopper& operator=(const PodStopper&) = delete;
  virtual ~PodStopper() = default;

  /// `report` is called for every step as it happens, also before this returns; CleanupEnded comes last, once, and
  /// always within a deadline. `reached`: how far it has come, where an evictd before this one has begun it, and what
  /// the pod holds, so that this need not be read again; what was reported is not reported again.
  virtual void begin(pods::RuntimePodPtr pod, core::Duration grace_period, Afterwards afterwards, Report report,
                     const std::optional<Reached>& reached) = 0;
};

}  // namespace evictd::evict
