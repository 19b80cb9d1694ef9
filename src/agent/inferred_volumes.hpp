#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/worker.hpp"
#include "core/pod.hpp"
#include "node/pod_directories.hpp"

namespace evictd::agent {

/// Told on the reactor that there are other volumes than the last list was completed by.
class VolumeListener {
 public:
  virtual void volumes_changed() = 0;

 protected:
  ~VolumeListener() = default;
};

/// Pods of which CRI alone is known have no volumes in their spec; those that the kubelet keeps on this node's disk are
/// told by their directories: <kubelet>/pods/UID/volumes/kubernetes.io~empty-dir and ~configmap. Where something is
/// mounted the medium is Memory. Volumes that a pod merely claims are completed by what is found, which counts as what
/// it is; other pods with volumes stay as they are. The disk is asked beside the reactor (10 µs a pod), as it may not
/// answer. On the reactor.
class InferredVolumes {
 public:
  InferredVolumes(std::unique_ptr<async::Worker> worker, node::PodRoots roots);

  /// The list with the volumes that are known of. Then looks for those of all its pods; the listener is told
  /// where there are others by then, and outlives this: the one of the last call.
  [[nodiscard]] core::PodListPtr complete(const core::PodListPtr& pods, VolumeListener& listener);
  /// Only looks; after complete(), and of the list that it was given.
  void look_again(const core::PodList& pods);

 private:
  using ByUid = std::map<std::string, std::vector<core::Volume>, std::less<>>;

  void look(std::vector<node::PodName> pods);

  std::unique_ptr<async::Worker> worker_;
  node::PodRoots roots_;
  ByUid known_;
  bool looking_ = false;
  std::optional<std::vector<node::PodName>> next_;  // whom to look for after that
  VolumeListener* listener_ = nullptr;              // null: nothing was completed yet
};

}  // namespace evictd::agent
