#pragma once
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::pods {

/// For nodes without a kubelet: whoever starts a pod may give its v1.PodSpec, as JSON, in this annotation of the
/// sandbox. CRI itself says nothing of volumes, of ephemeral-storage and of exact requests.
inline constexpr std::string_view pod_spec_annotation = "evictd.io/pod-spec";

/// Puts the annotated spec in place of what would be inferred: containers, volumes, overhead, tolerations, what
/// decides on which node it may run and the grace period, and the priority where it names one. Whether the pod has one;
/// one that cannot be read is a warning and counts as absent.
bool apply_annotated_spec(core::Pod& pod, std::vector<Error>& warnings);

}  // namespace evictd::pods
