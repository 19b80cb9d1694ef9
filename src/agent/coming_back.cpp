#include "agent/coming_back.hpp"

#include <algorithm>
#include <cerrno>

#include "wake/fence.hpp"

namespace evictd::agent {
namespace {

/// More anonymous memory than a sandbox's process has: other processes hold it.
constexpr std::int64_t sandbox_at_most = 1 << 20;

bool is_empty(const os::FileResult<bool>& empty) { return empty && *empty; }

/// Whether no process is left but the sandbox's. Of a pod whose containers are not all known the pod's cgroup tells.
bool has_ended(const node::PodCgroups& cgroups, const pods::RuntimePod& pod) {
  const auto runs = [](const pods::RuntimeContainer& c) { return c.state != pods::ContainerState::Exited; };
  const auto is_known = [](const pods::RuntimeContainer& c) { return !c.cgroup.empty(); };
  if (pod.containers.empty() || !std::ranges::all_of(pod.containers, is_known))
    return is_empty(cgroups.is_empty_or_gone(pod.pod->uid));
  return std::ranges::all_of(pod.containers, [&](const pods::RuntimeContainer& container) {
    return !runs(container) || is_empty(cgroups.is_cgroup_empty_or_gone(container.cgroup));
  });
}

}  // namespace

std::optional<std::int64_t> coming_back(node::PodCgroups& cgroups, const pods::RuntimePod& pod) {
  const auto held = cgroups.process_memory(pod.pod->uid);
  if (!held)
    return held.error().is_gone() || held.error().code == EINVAL ? std::optional<std::int64_t>{0} : std::nullopt;
  if (held->anonymous <= sandbox_at_most && has_ended(cgroups, pod)) return 0;
  return held->all;
}

std::int64_t held_by_tmpfs(node::PodCgroups& cgroups, std::string_view uid) {
  const auto held = cgroups.process_memory(uid);
  return held ? held->shared : 0;
}

bool lifts_fence(const evict::EvictionRecord& eviction, std::span<const core::Releasing> releasing) {
  const bool is_ending = eviction.killed || eviction.given_time != evict::GivenTime::none;
  if (!is_ending || eviction.released || eviction.gone) return false;
  const auto measured = std::ranges::find(releasing, eviction.pod->uid, &core::Releasing::uid);
  return measured == releasing.end() || measured->bytes > wake::fence_margin;
}

}  // namespace evictd::agent
