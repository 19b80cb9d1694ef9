#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::pods {

/// For nodes without a kubelet: the client that starts a pod may give its v1.PodSpec, as JSON, in this annotation of
/// the sandbox. CRI itself says nothing of volumes, of ephemeral-storage and of exact requests.
inline constexpr std::string_view pod_spec_annotation = "evictd.io/pod-spec";
/// Bytes: what Kubernetes permits all annotations of an object together. The text is a stranger's: so much is read in
/// some 5 ms, and more is not read.
inline constexpr std::size_t max_annotated_spec = std::size_t{256} << 10;
/// What the lists and mappings of it that are read may have in all: containers, ports, volumes, tolerations, amounts, …
/// Each takes 3 bytes of the text or more, and up to some 300 for as long as the pod is there. A pod of a hundred
/// containers with ten ports and eight amounts each has no more.
inline constexpr std::size_t max_annotated_elements = 2048;

/// What the annotation says: a pod without a name, and without preStop hooks, in a trusted namespace as well. One that
/// is larger, or has more elements, than the limits above is an error.
[[nodiscard]] Result<core::Pod> read_annotated_spec(std::string_view annotation);

/// Puts the annotated spec in place of what would be inferred: containers, volumes, overhead, tolerations, what
/// decides on which node it may run and the grace period, and the priority where it names one. Whether that was done; a
/// spec that cannot be read is a warning and counts as absent.
bool apply_annotated_spec(const Result<core::Pod>& spec, core::Pod& pod, std::vector<Error>& warnings);
/// The same for what the pod is annotated with; false where it is not.
bool apply_annotated_spec(core::Pod& pod, std::vector<Error>& warnings);

}  // namespace evictd::pods
