#pragma once
#include <map>
#include <optional>
#include <string>

#include "core/pod.hpp"

namespace evictd::core {

/// What a status says that a container, or the pod as a whole, was given of what it requests.
struct GivenRequests {
  std::optional<ResourceList> allocated{};  ///< allocatedResources: what the kubelet has set aside
  std::optional<ResourceList> actuated{};   ///< resources.requests: what its cgroup has; empty: only limits are told

  [[nodiscard]] bool empty() const { return !allocated && !actuated; }
};

/// What the status of a pod says of a resize in place. A running pod has one that was never resized, too.
struct ResizeStatus {
  GivenRequests pod{};
  std::map<std::string, GivenRequests, std::less<>> containers{};  ///< by name, init containers among them
  bool infeasible = false;  ///< condition PodResizePending, reason Infeasible: the spec's requests are never given

  [[nodiscard]] bool empty() const { return pod.empty() && containers.empty(); }
};

/// Puts what was allocated in place of what the spec requests of cpu and memory, which alone can be resized: by that
/// the pod is ranked and preempted. What it takes of the node in the eyes of pods that come (Pod::taken) is, of its
/// spec, what is actuated and what is allocated, the largest; the spec's is left out where it is infeasible. Its QoS
/// class stays the spec's. Of a part that the status does not tell of the spec counts. (kubelet 1.36:
/// UpdatePodFromAllocation; component-helpers resource/helpers.go, PodRequests with UseStatusResources)
void apply_resize(Pod& pod, const ResizeStatus& status);

/// The same of a resize that was admitted just now, of which no status tells yet: the pod counts with the requests of
/// `desired`, and takes the largest of those and of what it took before.
void allocate_resize(Pod& pod, const Pod& desired);

/// The same of a pod of which less is told than it was admitted with, since not all its containers are there yet: it
/// asks for what `admitted` does, and takes the largest of that and of what is told of it. False: no less is told, and
/// it stays as it is.
bool raise_to_admitted(Pod& pod, const Pod& admitted);

}  // namespace evictd::core
