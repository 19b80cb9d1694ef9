#include "agent/inferred_volumes.hpp"

#include <filesystem>

namespace evictd::agent {
namespace {

void add_volumes(core::Pod& pod, const std::filesystem::path& directory, core::Volume::Kind kind) {
  std::error_code gone;
  for (std::filesystem::directory_iterator entries{directory, gone}; !gone && entries != end(entries);
       entries.increment(gone))
    pod.volumes.push_back({.name = entries->path().filename(), .kind = kind});
}

}  // namespace

core::PodListPtr with_inferred_volumes(const core::PodListPtr& pods, const node::PodRoots& roots) {
  auto result = std::make_shared<core::PodList>();
  for (const auto& pod : *pods) {
    const auto volumes = node::pod_directory(roots, {pod->uid, pod->name_space, pod->name}) / "volumes";
    std::error_code ignored;
    if (!pod->volumes.empty() || !std::filesystem::exists(volumes, ignored)) {
      result->push_back(pod);
      continue;
    }
    auto completed = std::make_shared<core::Pod>(*pod);
    add_volumes(*completed, volumes / "kubernetes.io~empty-dir", core::Volume::Kind::EmptyDir);
    add_volumes(*completed, volumes / "kubernetes.io~configmap", core::Volume::Kind::ConfigMap);
    result->push_back(std::move(completed));
  }
  return result;
}

}  // namespace evictd::agent
