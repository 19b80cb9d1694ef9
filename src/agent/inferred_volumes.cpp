#include "agent/inferred_volumes.hpp"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace evictd::agent {
namespace {

constexpr std::pair<std::string_view, core::Volume::Kind> inferred[]{
    {"kubernetes.io~empty-dir", core::Volume::Kind::EmptyDir},
    {"kubernetes.io~configmap", core::Volume::Kind::ConfigMap}};

}  // namespace

core::PodListPtr with_inferred_volumes(const core::PodListPtr& pods, const node::PodRoots& roots) {
  auto result = std::make_shared<core::PodList>();
  for (const auto& pod : *pods) {
    std::vector<core::Volume> volumes;
    if (pod->volumes.empty())
      for (const auto& [plugin, kind] : inferred)
        for (auto& name : node::volume_names(roots, {pod->uid, pod->name_space, pod->name}, plugin))
          volumes.push_back({.name = std::move(name), .kind = kind});
    if (volumes.empty()) {
      result->push_back(pod);
      continue;
    }
    auto completed = std::make_shared<core::Pod>(*pod);
    completed->volumes = std::move(volumes);
    result->push_back(std::move(completed));
  }
  return result;
}

}  // namespace evictd::agent
