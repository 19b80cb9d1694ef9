#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cri/messages.hpp"

namespace evictd::evict {

/// Which images containers have mounted as volumes (Kubernetes 1.36: image volumes). No list says it, only the status
/// of each container; but a container's mounts never change, so each is asked about once. Pure.
class ImageVolumes {
 public:
  /// Ids of those containers of whose mounts nothing is known. What is known of any others is forgotten: the list has
  /// all that there are.
  [[nodiscard]] std::vector<std::string> to_ask(const cri::v1::ListContainersResponse& containers);
  void learn(const std::string& container, const cri::v1::ContainerStatus& status);

  /// What these containers have mounted, as far as it is known: ids, tags or digests. A kubelet has images mounted by
  /// their ids.
  [[nodiscard]] std::set<std::string> mounted_by(const cri::v1::ListContainersResponse& containers) const;

 private:
  std::map<std::string, std::vector<std::string>> images_;  // by the container's id; of most there are none
};

}  // namespace evictd::evict
