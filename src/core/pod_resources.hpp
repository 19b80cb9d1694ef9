#pragma once
#include <string_view>

#include "core/pod.hpp"
#include "core/quantity.hpp"

namespace evictd::core {

/// What the containers ask for together: those that run at once and all sidecars, or the largest init container beside
/// the sidecars started before it.
[[nodiscard]] Quantity containers_request(const Pod& pod, std::string_view resource);

/// What the pod asks for of one resource: what its containers ask for; a pod-level request replaces that; overhead is
/// added where the sum is not zero (kubelet-spec section 6).
[[nodiscard]] Quantity pod_request(const Pod& pod, std::string_view resource);

/// The same sum over limits; overhead is added only where the limit is not zero.
[[nodiscard]] Quantity pod_limit(const Pod& pod, std::string_view resource);

/// A container's own request, zero where it names none.
[[nodiscard]] Quantity container_request(const Container& container, std::string_view resource);

/// Every resource that any part of the pod requests (or limits), with the pod's sum.
[[nodiscard]] ResourceList pod_requests(const Pod& pod);
[[nodiscard]] ResourceList pod_limits(const Pod& pod);

/// Requests that are absent become the limits, as the API server does; those of a pod with pod-level limits first what
/// its containers request. For pods read from files.
void apply_request_defaults(Pod& pod);

}  // namespace evictd::core
