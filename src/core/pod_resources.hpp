#pragma once
#include <string_view>

#include "core/pod.hpp"
#include "core/quantity.hpp"

namespace evictd::core {

/// What the containers ask for together: those that run at once and all sidecars, or the largest init container beside
/// the sidecars started before it.
[[nodiscard]] Quantity containers_request(const Pod& pod, std::string_view resource);

/// The resources that a pod may ask for as a whole (spec.resources): cpu, memory and huge pages. Others that stand
/// there count for nothing. (kubelet 1.36: IsSupportedPodLevelResource)
[[nodiscard]] bool is_pod_level_resource(std::string_view resource);

/// Whether the pod as a whole requests or limits any of them. (kubelet 1.36: IsPodLevelResourcesSet)
[[nodiscard]] bool has_pod_level_resources(const Pod& pod);

/// What the pod asks for of one resource, as it is ranked by and as preemption counts it: what it asks for as a whole
/// where it has pod-level resources, which is zero of a resource that it does not name there; otherwise what its
/// containers ask for. Overhead is added where that is not zero. (kubelet 1.36: GetResourceRequestQuantity)
[[nodiscard]] Quantity pod_request(const Pod& pod, std::string_view resource);

/// The limit of the pod as a whole; where it names none, the sum of its containers'. Overhead is added where that is
/// not zero. (kubelet 1.36: PodLimits)
[[nodiscard]] Quantity pod_limit(const Pod& pod, std::string_view resource);

/// A container's own request, zero where it names none.
[[nodiscard]] Quantity container_request(const Container& container, std::string_view resource);

/// Every resource that any part of the pod requests (or limits), with what pod_request (pod_limit) says of it.
[[nodiscard]] ResourceList pod_requests(const Pod& pod);
[[nodiscard]] ResourceList pod_limits(const Pod& pod);

/// Requests that are absent become the limits, as the API server does. Those of a pod as a whole do so only where it
/// has limits as a whole, and become what its containers request first. For pods read from files. (kubernetes 1.36:
/// SetDefaults_Pod)
void apply_request_defaults(Pod& pod);

}  // namespace evictd::core
