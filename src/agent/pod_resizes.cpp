#include "agent/pod_resizes.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/pod_resources.hpp"
#include "core/qos.hpp"
#include "core/resize.hpp"
#include "pods/infer.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::agent {
namespace {

/// Whether nothing that both have requests something else. Containers may have come and gone.
bool requests_the_same(const core::Pod& before, const core::Pod& now) {
  const auto is_same_container = [&before](const core::Container& container) {
    const auto found = std::ranges::find(before.containers, container.name, &core::Container::name);
    return found == before.containers.end() || found->resources.requests == container.resources.requests;
  };
  return before.resources == now.resources && before.taken == now.taken &&
         std::ranges::all_of(now.containers, is_same_container);
}

}  // namespace

core::PodPtr resized_pod(const core::Pod& pod, const core::Pod& desired) {
  auto result = pod;
  core::allocate_resize(result, desired);
  return std::make_shared<const core::Pod>(std::move(result));
}

std::optional<core::Pod> updated_pod(const api::ContainerUpdate& update, const core::PodList& pods,
                                     const RunningPods& running) {
  const auto is_meant = [&](const pods::RuntimeContainer& container) {
    return container.id.starts_with(update.container_id);
  };
  for (const auto& pod : pods) {
    const auto found = running.find(pod->uid);
    if (!found) continue;
    const auto container = std::ranges::find_if(found->containers, is_meant);
    if (container == found->containers.end()) continue;
    auto desired = *pod;
    for (auto* containers : {&desired.init_containers, &desired.containers})
      for (auto& each : *containers)
        if (each.name == container->name) pods::apply_update(each, update.resources, core::qos_class(*pod));
    return desired;
  }
  return std::nullopt;
}

bool requests_more(const core::Pod& before, const core::Pod& desired) {
  return core::pod_request(desired, "cpu") > core::pod_request(before, "cpu") ||
         core::pod_request(desired, "memory") > core::pod_request(before, "memory");
}

PodResizes::Added PodResizes::add(const core::PodPtr& told, const core::Pod& desired,
                                  std::optional<api::ContainerUpdate> update) {
  auto& resize = resizes_.try_emplace(told->uid, Resize{.before = told, .desired = {}}).first->second;
  resize.earlier = std::exchange(resize.desired, std::make_shared<const core::Pod>(desired));
  resize.update = std::move(update);
  return {.uid = told->uid, .desired = resize.desired, .earlier = resize.earlier};
}

void PodResizes::take_back(const Added& added) {
  const auto found = resizes_.find(added.uid);
  if (found == resizes_.end() || found->second.desired != added.desired) return;
  if (added.earlier == nullptr)
    resizes_.erase(found);
  else
    found->second = Resize{.before = found->second.before, .desired = added.earlier};
}

void PodResizes::refused(const api::ContainerUpdate& update) {
  const auto found = std::ranges::find_if(resizes_, [&](const auto& entry) { return entry.second.update == update; });
  if (found == resizes_.end()) return;
  const Added last{.uid = found->first, .desired = found->second.desired, .earlier = found->second.earlier};
  take_back(last);
}

void PodResizes::apply(core::PodList& pods) const {
  for (auto& pod : pods)
    if (const auto found = resizes_.find(pod->uid); found != resizes_.end())
      pod = resized_pod(*pod, *found->second.desired);
}

void PodResizes::pods_changed(const core::PodList& pods, const std::function<bool(const std::string&)>& is_coming) {
  std::erase_if(resizes_, [&](const auto& entry) {
    const auto& [uid, resize] = entry;
    const auto told = std::ranges::find_if(pods, [&uid](const auto& pod) { return pod->uid == uid; });
    return told == pods.end() ? !is_coming(uid) : !requests_the_same(*resize.before, **told);
  });
}

}  // namespace evictd::agent
