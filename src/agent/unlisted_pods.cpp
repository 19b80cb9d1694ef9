#include "agent/unlisted_pods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "core/pod.hpp"
#include "core/qos.hpp"
#include "core/quantity.hpp"
#include "node/cgroup_processes.hpp"
#include "pods/cgroup_name.hpp"

namespace evictd::agent {
namespace {

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::optional<int> oom_score_adj(const std::string& proc, pid_t pid) {
  std::ifstream file{fmt::format("{}/{}/oom_score_adj", proc, pid)};
  int value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

bool same(const std::vector<pods::RuntimePodPtr>& a, const std::vector<pods::RuntimePodPtr>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return *x->pod == *y->pod; });
}

}  // namespace

bool UnlistedPods::look(const std::function<bool(std::string_view uid)>& is_listed) {
  std::vector<pods::RuntimePodPtr> found;
  for (const auto& cgroup : cgroups()) {
    const auto uid = pods::uid_in_cgroup_name(last_part(cgroup));
    if (!uid || is_listed(*uid)) continue;
    if (auto pod = infer(cgroup, *uid)) found.push_back(std::move(pod));
  }
  const bool changed = !same(found, pods_);
  pods_ = std::move(found);
  return changed;
}

/// Below the pods' cgroup and its QoS classes.
std::vector<std::string> UnlistedPods::cgroups() const {
  std::vector<std::string> result;
  const auto add_below = [&](const std::string& cgroup) {
    const auto directory = place_.hierarchy.memory(cgroup);
    if (!directory) return;
    for (const auto& name : directory->subdirectories().value_or(std::vector<std::string>{}))
      result.push_back(cgroup + '/' + name);
  };
  add_below(place_.pods_cgroup);
  const auto classes = result;
  for (const auto& cgroup : classes)
    if (!pods::uid_in_cgroup_name(last_part(cgroup))) add_below(cgroup);
  return result;
}

/// Null for one without processes: it uses nothing.
pods::RuntimePodPtr UnlistedPods::infer(const std::string& cgroup, const std::string& uid) const {
  const auto processes = node::processes(place_.hierarchy, cgroup);
  if (!processes || processes->empty()) return nullptr;
  // The sandbox's own process is protected more than any container.
  std::optional<int> adjustment;
  for (const auto pid : *processes) adjustment = std::max(adjustment, oom_score_adj(place_.proc, pid));

  core::Pod pod{.name_space = "unlisted", .name = uid, .uid = uid};
  if (const auto known = pods::pod_cgroup(cgroup, uid)) pod.status_qos = known->qos;
  core::Container container{.name = "unknown"};
  if (adjustment && *adjustment >= 2 && *adjustment <= 999)
    container.resources.requests["memory"] =
        core::Quantity::bytes(core::request_from_oom_score_adj(*adjustment, place_.memory_capacity));
  pod.containers.push_back(std::move(container));
  constexpr int guaranteed = -997;
  if (adjustment && *adjustment <= guaranteed) pod.priority = core::system_critical_priority;
  return std::make_shared<const pods::RuntimePod>(
      pods::RuntimePod{.pod = std::make_shared<const core::Pod>(std::move(pod)), .cgroup = cgroup});
}

pods::RuntimePodPtr UnlistedPods::find(std::string_view uid) const {
  const auto found = std::ranges::find(pods_, uid, [](const pods::RuntimePodPtr& pod) { return pod->pod->uid; });
  return found == pods_.end() ? nullptr : *found;
}

}  // namespace evictd::agent
