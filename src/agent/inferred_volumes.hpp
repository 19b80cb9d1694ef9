#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/worker.hpp"
#include "core/pod.hpp"
#include "node/pod_directories.hpp"

namespace evictd::agent {

/// Pods of which CRI alone is known have no volumes in their spec; those that the kubelet keeps on this node's disk are
/// told by their directories: <kubelet>/pods/UID/volumes/kubernetes.io~empty-dir and ~configmap. Pods with volumes stay
/// as they are. The disk is asked beside the reactor (10 µs a pod), as it may not answer. On the reactor.
class InferredVolumes {
 public:
  InferredVolumes(std::unique_ptr<async::Worker> worker, node::PodRoots roots);

  /// The list with the volumes that are known of. Then looks for those of all its pods; `on_change` is called where
  /// there are others by then. One listener: the last one.
  [[nodiscard]] core::PodListPtr complete(const core::PodListPtr& pods, std::function<void()> on_change);

 private:
  using ByUid = std::map<std::string, std::vector<core::Volume>, std::less<>>;

  void look(std::vector<node::PodName> pods);

  std::unique_ptr<async::Worker> worker_;
  node::PodRoots roots_;
  ByUid known_;
  bool looking_ = false;
  std::optional<std::vector<node::PodName>> next_;  // whom to look for after that
  std::function<void()> on_change_;
};

}  // namespace evictd::agent
