#include "evict/image_volumes.hpp"

#include <api.pb.h>

#include <utility>

namespace evictd::evict {

std::vector<std::string> ImageVolumes::to_ask(const cri::v1::ListContainersResponse& containers) {
  std::vector<std::string> unknown;
  std::map<std::string, std::vector<std::string>> present;
  for (const auto& container : containers.containers()) {
    if (auto known = images_.extract(container.id()))
      present.insert(std::move(known));
    else if (!present.contains(container.id()))
      unknown.push_back(container.id());
  }
  images_ = std::move(present);
  return unknown;
}

void ImageVolumes::learn(const std::string& container, const cri::v1::ContainerStatus& status) {
  auto& images = images_[container];
  images.clear();
  for (const auto& mount : status.mounts())
    if (!mount.image().image().empty()) images.push_back(mount.image().image());
}

std::set<std::string> ImageVolumes::mounted_by(const cri::v1::ListContainersResponse& containers) const {
  std::set<std::string> mounted;
  for (const auto& container : containers.containers())
    if (const auto known = images_.find(container.id()); known != images_.end())
      mounted.insert(known->second.begin(), known->second.end());
  return mounted;
}

}  // namespace evictd::evict
