#pragma once
#include "core/pod.hpp"
#include "node/pod_directories.hpp"

namespace evictd::agent {

/// Pods of which CRI alone is known have no volumes in their spec; those that the kubelet keeps on this node's disk are
/// told by their directories: <kubelet>/pods/UID/volumes/kubernetes.io~empty-dir and ~configmap. Pods with volumes stay
/// as they are. A directory listing a pod: 10 µs.
[[nodiscard]] core::PodListPtr with_inferred_volumes(const core::PodListPtr& pods, const node::PodRoots& roots);

}  // namespace evictd::agent
