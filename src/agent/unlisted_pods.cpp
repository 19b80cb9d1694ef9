#include "agent/unlisted_pods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "core/pod_resources.hpp"
#include "core/qos.hpp"
#include "core/quantity.hpp"
#include "node/process_sample.hpp"

namespace evictd::agent {
namespace {

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// "burstable", "kubepods-besteffort.slice"
bool is_qos_class(std::string_view name) {
  constexpr std::string_view slice = ".slice";
  if (name.ends_with(slice)) {
    name.remove_suffix(slice.size());
    name = name.substr(name.rfind('-') + 1);
  }
  return name == "burstable" || name == "besteffort";
}

std::optional<int> oom_score_adj(const std::string& proc, pid_t pid) {
  std::ifstream file{fmt::format("{}/{}/oom_score_adj", proc, pid)};
  int value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

bool same(const std::vector<pods::RuntimePodPtr>& a, const std::vector<pods::RuntimePodPtr>& b) {
  return std::ranges::equal(a, b,
                            [](const auto& x, const auto& y) { return *x->pod == *y->pod && x->cgroup == y->cgroup; });
}

}  // namespace

bool UnlistedPods::look(const ListedPods& listed) {
  if (!is_as_seen()) find_cgroups();
  return infer_unlisted(listed);
}

bool UnlistedPods::look_again(const ListedPods& listed) {
  if (!is_as_seen())
    find_cgroups();
  else if (all_listed_)
    return false;
  return infer_unlisted(listed);
}

bool UnlistedPods::infer_unlisted(const ListedPods& listed) {
  forget_critical();
  all_listed_ = true;
  std::vector<pods::RuntimePodPtr> found;
  for (const auto& one : found_) {
    if (listed.contains(one.named)) continue;
    all_listed_ = false;
    if (listed.goes(one.named)) continue;
    if (auto pod = infer(one)) found.push_back(std::move(pod));
  }
  const bool changed = !same(found, pods_);
  pods_ = std::move(found);
  return changed;
}

std::vector<std::string> UnlistedPods::names_in(const std::string& cgroup) const {
  const auto directory = place_.hierarchy.memory(cgroup);
  return directory ? directory->subdirectories().value_or(std::vector<std::string>{}) : std::vector<std::string>{};
}

std::uint64_t UnlistedPods::pods_inode() const { return place_.hierarchy.memory_inode(place_.pods_cgroup); }

/// Most looks find the cgroups that the last one found. Where inotify does not tell, to see that costs a quarter of
/// sorting them out. It does not tell of the pods' cgroup itself, which another one may have replaced.
bool UnlistedPods::is_as_seen() {
  if (seen_.empty()) return false;
  if (is_watched_) return pods_inode() == pods_inode_ && !changes_.any();
  return std::ranges::all_of(seen_,
                             [this](const auto& directory) { return names_in(directory.first) == directory.second; });
}

std::vector<std::string> UnlistedPods::below(const std::string& cgroup) {
  const auto directory = place_.hierarchy.memory(cgroup);
  // First the watch, then the list: what comes between the two is seen twice, and not never.
  const bool is_watched = directory && changes_.watch(*directory);
  auto names = directory ? directory->subdirectories() : std::unexpected(directory.error());
  is_watched_ = is_watched_ && is_watched && names.has_value();
  std::vector<std::string> result;
  for (const auto& name : seen_.emplace_back(cgroup, std::move(names).value_or(std::vector<std::string>{})).second)
    result.push_back(cgroup + '/' + name);
  return result;
}

/// Below the pods' cgroup and what may be a QoS class.
void UnlistedPods::find_cgroups() {
  seen_.clear();
  is_watched_ = true;
  pods_inode_ = pods_inode();
  found_.clear();
  strays_.clear();
  cgroups_.clear();
  const auto is_pod = [&](const std::string& cgroup) {
    auto name = last_part(cgroup);
    auto named = pods::named_uid(name);
    if (!named) return false;
    cgroups_.emplace(named->escaped ? name.substr(name.rfind('-') + 1) : std::move(name), cgroup);
    found_.push_back({cgroup, *std::move(named)});
    return true;
  };
  for (const auto& cgroup : below(place_.pods_cgroup)) {
    if (is_pod(cgroup)) continue;
    std::vector<std::string> others;
    const auto before = found_.size();
    for (auto& child : below(cgroup))
      if (!is_pod(child)) others.push_back(std::move(child));
    // What is not a place of pods is one stray as a whole.
    if (!is_qos_class(last_part(cgroup)) && found_.size() == before) others = {cgroup};
    std::ranges::move(others, std::back_inserter(strays_));
  }
  changes_.keep_rewatched();
}

std::string UnlistedPods::cgroup_of(std::string_view uid) const {
  for (const auto& name : {fmt::format("pod{}", uid), fmt::format("pod{}.slice", pods::escaped_uid(uid))})
    if (const auto found = cgroups_.find(name); found != cgroups_.end()) return found->second;
  return {};
}

void UnlistedPods::remember(const core::PodList& listed) {
  for (const auto& pod : listed)
    if (core::is_critical(*pod)) critical_.insert(pod->uid);
}

void UnlistedPods::forget_critical() {
  std::erase_if(critical_, [&](const std::string& uid) {
    return std::ranges::none_of(found_, [&](const Found& found) { return found.named.is_of(uid); });
  });
}

/// Null for one without processes: it uses nothing. The processes of one container have the same oom_score_adj, unless
/// they changed it.
pods::RuntimePodPtr UnlistedPods::infer(const Found& found) const {
  const auto& [cgroup, named] = found;
  const auto processes = node::sample_processes(place_.hierarchy, cgroup);
  if (!processes || (processes->pids.empty() && processes->complete)) return nullptr;
  // The sandbox's own process is protected more than any container.
  std::optional<int> adjustment;
  for (const auto pid : processes->pids) adjustment = std::max(adjustment, oom_score_adj(place_.proc, pid));

  const auto remembered = std::ranges::find_if(critical_, [&](const std::string& uid) { return named.is_of(uid); });
  const auto& uid = remembered != critical_.end() ? *remembered : named.uid;
  core::Pod pod{.name_space = "unlisted", .name = uid, .uid = uid};
  if (const auto known = pods::pod_cgroup(cgroup, uid)) pod.status_qos = known->qos;
  core::Container container{.name = "unknown"};
  if (adjustment && *adjustment >= 2 && *adjustment <= 999)
    container.resources.requests["memory"] =
        core::Quantity::bytes(core::request_from_oom_score_adj(*adjustment, place_.memory_capacity));
  pod.containers.push_back(std::move(container));
  constexpr int guaranteed = -997;
  if (remembered != critical_.end() || (adjustment && *adjustment <= guaranteed))
    pod.priority = core::system_critical_priority;
  return std::make_shared<const pods::RuntimePod>(
      pods::RuntimePod{.pod = std::make_shared<const core::Pod>(std::move(pod)), .cgroup = cgroup});
}

core::PodPtr complete_blank(const core::PodPtr& listed, const core::Pod& inferred) {
  if (listed->status_qos || core::pod_request(*listed, "memory").value() > 0) return listed;
  auto pod = std::make_shared<core::Pod>(*listed);
  pod->status_qos = inferred.status_qos;
  pod->containers = inferred.containers;
  if (!pod->priority) pod->priority = inferred.priority;
  return pod;
}

pods::RuntimePodPtr UnlistedPods::find(std::string_view uid) const {
  const auto found = std::ranges::find(pods_, uid, [](const pods::RuntimePodPtr& pod) { return pod->pod->uid; });
  return found == pods_.end() ? nullptr : *found;
}

}  // namespace evictd::agent
