#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/pod.hpp"
#include "core/saturating.hpp"

namespace evictd::admission {

/// A resource of which the node has too little left. CPU is counted in thousandths, all else in whole units.
/// (kubelet: InsufficientResourceError)
struct InsufficientResource {
  std::string resource;  ///< "cpu", "pods", "example.com/gpu", …
  std::int64_t requested = 0;
  std::int64_t used = 0;  ///< by the requests of the other pods
  std::int64_t capacity = 0;

  [[nodiscard]] std::int64_t missing() const { return core::saturating_add(requested - capacity, used); }
  friend bool operator==(const InsufficientResource&, const InsufficientResource&) = default;
};

/// A resource that is not Kubernetes' own: its name has a domain, and not kubernetes.io.
[[nodiscard]] bool is_extended_resource(std::string_view resource);

/// A resource that is counted one by one: extended ones, huge pages, whatever has kubernetes.io in its name, and
/// attachable volumes. Others besides cpu, memory and ephemeral-storage are of no interest. (kubelet:
/// IsScalarResourceName)
[[nodiscard]] bool is_scalar_resource(std::string_view resource);

/// What a pod asks of the node. Unlike core::pod_request, overhead counts even where the containers ask for nothing,
/// and pod-level requests only of cpu, memory and huge pages. (kubelet: computePodResourceRequest)
[[nodiscard]] std::int64_t scheduled_request(const core::Pod& pod, std::string_view resource);

/// What a pod that is there takes of the node, a resize in place included (core/resize.hpp). (scheduler framework 1.36:
/// CalculateResource)
[[nodiscard]] std::int64_t taken_request(const core::Pod& pod, std::string_view resource);

/// The pod without requests for extended resources that the node has not: they are the cluster's, not the node's.
/// (kubelet: removeMissingExtendedResources)
[[nodiscard]] core::Pod without_missing_extended_resources(core::Pod pod, const core::ResourceList& allocatable);

/// What the node has too little of: pods, cpu, memory, ephemeral-storage, then the others by name. What is not
/// allocatable at all is not there. (kubelet: noderesources.Fits)
[[nodiscard]] std::vector<InsufficientResource> insufficient_resources(const core::Pod& pod,
                                                                       const core::PodList& others,
                                                                       const core::ResourceList& allocatable);

}  // namespace evictd::admission
