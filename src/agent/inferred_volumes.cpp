#include "agent/inferred_volumes.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace evictd::agent {
namespace {

constexpr std::pair<std::string_view, core::Volume::Kind> inferred[]{
    {"kubernetes.io~empty-dir", core::Volume::Kind::EmptyDir},
    {"kubernetes.io~configmap", core::Volume::Kind::ConfigMap}};

std::vector<core::Volume> volumes_of(const node::PodRoots& roots, const node::PodName& pod) {
  std::vector<core::Volume> volumes;
  for (const auto& [plugin, kind] : inferred)
    for (auto& [name, is_mounted] : node::named_volumes(roots, pod, plugin))
      volumes.push_back({.name = std::move(name), .kind = kind, .medium = is_mounted ? "Memory" : ""});
  return volumes;
}

bool may_have_others(const core::Pod& pod) { return pod.volumes.empty() || pod.volumes_are_claimed; }

/// What is found is what it is, whatever the pod claims of it. A limit stays: it only works against the pod.
void add_found(std::vector<core::Volume>& volumes, const std::vector<core::Volume>& found) {
  std::map<std::string_view, const core::Volume*> unclaimed;
  for (const auto& volume : found) unclaimed.emplace(volume.name, &volume);
  for (auto& claimed : volumes) {
    const auto its = unclaimed.find(claimed.name);
    if (its == unclaimed.end()) continue;
    claimed.kind = its->second->kind;
    claimed.medium = its->second->medium;
    unclaimed.erase(its);
  }
  std::ranges::copy_if(found, std::back_inserter(volumes),
                       [&](const core::Volume& volume) { return unclaimed.contains(volume.name); });
}

}  // namespace

InferredVolumes::InferredVolumes(std::unique_ptr<async::Worker> worker, node::PodRoots roots)
    : worker_{std::move(worker)}, roots_{std::move(roots)} {}

core::PodListPtr InferredVolumes::complete(const core::PodListPtr& pods, VolumeListener& listener) {
  listener_ = &listener;
  auto result = std::make_shared<core::PodList>();
  result->reserve(pods->size());
  for (const auto& pod : *pods) {
    const auto known = may_have_others(*pod) ? known_.find(pod->uid) : known_.end();
    if (known == known_.end()) {
      result->push_back(pod);
      continue;
    }
    auto completed = std::make_shared<core::Pod>(*pod);
    add_found(completed->volumes, known->second);
    result->push_back(std::move(completed));
  }
  look_again(*pods);
  return result;
}

void InferredVolumes::look_again(const core::PodList& pods) {
  std::vector<node::PodName> wanted;
  for (const auto& pod : pods)
    if (may_have_others(*pod)) wanted.push_back({pod->uid, pod->name_space, pod->name});
  if (looking_)
    next_ = std::move(wanted);
  else
    look(std::move(wanted));
}

void InferredVolumes::look(std::vector<node::PodName> pods) {
  looking_ = true;
  const auto found = std::make_shared<ByUid>();
  auto work = [roots = roots_, pods = std::move(pods), found] {
    for (const auto& pod : pods)
      if (auto volumes = volumes_of(roots, pod); !volumes.empty()) found->emplace(pod.uid, std::move(volumes));
  };
  worker_->run(std::move(work), [this, found] {
    looking_ = false;
    const bool changed = *found != known_;
    known_ = std::move(*found);
    if (auto next = std::exchange(next_, std::nullopt)) look(*std::move(next));
    if (changed) listener_->volumes_changed();
  });
}

}  // namespace evictd::agent
