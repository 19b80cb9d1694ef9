#include "evict/ready_strike.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "evict/sandbox_cgroup.hpp"
#include "node/cgroup_processes.hpp"
#include "node/memory_cgroup.hpp"
#include "os/file_error.hpp"
#include "os/pidfd.hpp"

namespace evictd::evict {
namespace {

/// A pod with more containers has none of them asked for what it holds: that may take some calls each.
constexpr std::size_t most_compared = 32;

std::size_t descriptors_of_own() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  return static_cast<std::size_t>(std::min<rlim_t>(files.rlim_cur / 16, ReadyStrike::most_descriptors));
}

void add_container(std::vector<std::string>& cgroups, const std::string& cgroup) {
  if (!cgroup.empty() && std::ranges::find(cgroups, cgroup) == cgroups.end()) cgroups.push_back(cgroup);
}

template <class Value>
void keep_only(std::map<std::string, Value, std::less<>>& kept, const std::vector<std::string>& wanted) {
  std::erase_if(kept, [&](const auto& entry) { return std::ranges::find(wanted, entry.first) == wanted.end(); });
}

}  // namespace

std::optional<std::vector<pid_t>> ReadyContainer::list() {
  if (unread_.empty()) return std::nullopt;
  const auto file = std::move(unread_.back());
  unread_.pop_back();
  auto pids = node::first_processes(file);
  if (!pids || pids->empty()) return std::nullopt;
  return *std::move(pids);
}

bool ReadyContainer::knows(pid_t pid) const {
  return std::ranges::find(unprotected_, pid, &Unprotected::pid) != unprotected_.end();
}

bool ReadyContainer::is_unprotected(pid_t pid) const {
  const auto known = std::ranges::find(unprotected_, pid, &Unprotected::pid);
  return known != unprotected_.end() && known->is_still();
}

ReadyStrike::ReadyStrike(Parts parts) : parts_{std::move(parts)} {}

void ReadyStrike::prepare(std::span<const pods::RuntimePodPtr> pods, core::Instant now) {
  const auto likeliest = pods.first(std::min(pods.size(), most_pods));
  std::vector<std::string> sandboxes;
  for (const auto& pod : likeliest) add_container(sandboxes, expected_sandbox_cgroup(*pod));
  if (!keep(containers_of(likeliest), now) || !keep_sandboxes(sandboxes)) release();
}

/// The largest of each pod first: that one is struck before all others.
std::vector<std::string> ReadyStrike::containers_of(std::span<const pods::RuntimePodPtr> pods) const {
  std::vector<std::string> cgroups;
  for (const auto& pod : pods)
    if (!pod->cgroup.empty() && pod->containers.size() <= most_compared)
      add_container(cgroups, parts_.cgroups.largest_container(pod->pod->uid));
  for (const auto& pod : pods)
    for (const auto& container : pod->containers)
      if (container.state != pods::ContainerState::Exited) add_container(cgroups, container.cgroup);
  cgroups.resize(std::min(cgroups.size(), most_containers));
  return cgroups;
}

/// False where descriptors are short.
bool ReadyStrike::keep(const std::vector<std::string>& containers, core::Instant now) {
  keep_only(containers_, containers);
  std::erase_if(containers_, [&](const auto& entry) { return now - entry.second.opened >= lasts; });
  for (const auto& cgroup : containers) {
    if (containers_.contains(cgroup)) continue;
    if (!has_room_for(2 + most_processes)) return true;
    auto container = open(cgroup);
    if (!container && container.error().is_out_of_descriptors()) return false;
    if (container) containers_.emplace(cgroup, Kept{*std::move(container), now});
  }
  return true;
}

bool ReadyStrike::keep_sandboxes(const std::vector<std::string>& sandboxes) {
  keep_only(sandboxes_, sandboxes);
  std::erase_if(sandboxes_, [](const auto& entry) { return !entry.second.read_number(); });
  for (const auto& cgroup : sandboxes) {
    if (sandboxes_.contains(cgroup)) continue;
    if (!has_room_for(1)) return true;
    auto file = node::memory_usage_file(parts_.hierarchy, cgroup);
    if (!file && file.error().is_out_of_descriptors()) return false;
    if (file) sandboxes_.emplace(cgroup, *std::move(file));
  }
  return true;
}

os::FileResult<ReadyContainer> ReadyStrike::open(std::string_view cgroup) const {
  ReadyContainer container;
  for (int i = 0; i < 2; ++i) {
    auto file = parts_.hierarchy.memory_file(cgroup, "cgroup.procs");
    if (!file) return std::unexpected(file.error());
    container.unread_.push_back(*std::move(file));
  }
  const auto tasks = node::task_count(parts_.hierarchy, cgroup);
  if (!tasks && tasks.error().is_out_of_descriptors()) return std::unexpected(tasks.error());
  if (!tasks || *tasks > most_tasks) return container;
  const auto pids = node::first_processes(parts_.hierarchy, cgroup);
  if (!pids) return std::unexpected(pids.error());
  for (const auto pid : std::span{*pids}.first(std::min(pids->size(), most_processes)))
    if (auto process = Unprotected::look(pid, parts_.is_protected, parts_.proc))
      container.unprotected_.push_back(*std::move(process));
  return container;
}

void ReadyStrike::rehearse(const pods::RuntimePod& pod) {
  if (pod.containers.size() > most_compared) return;
  const auto cgroup = parts_.cgroups.largest_container(pod.pod->uid);
  const auto kept = containers_.find(cgroup);
  // Where none of its processes was looked at there may be thousands, whose list is as long to read.
  if (kept == containers_.end() || !kept->second.container.was_looked_at()) return;
  const auto opened = kept->second.opened;
  static_cast<void>(usage(expected_sandbox_cgroup(pod)));
  if (auto container = take(cgroup)) {
    for (const auto pid : container->list().value_or(std::vector<pid_t>{})) {
      if (!container->knows(pid)) continue;
      const auto held = os::open_pidfd(pid);
      static_cast<void>(container->is_unprotected(pid));
    }
    static_cast<void>(container->list());
  }
  if (auto again = open(cgroup)) containers_.emplace(cgroup, Kept{*std::move(again), opened});
}

std::optional<ReadyContainer> ReadyStrike::take(std::string_view cgroup) {
  const auto found = containers_.find(cgroup);
  if (found == containers_.end()) return std::nullopt;
  auto taken = std::move(found->second.container);
  containers_.erase(found);
  return taken;
}

std::optional<std::int64_t> ReadyStrike::usage(std::string_view cgroup) const {
  const auto found = sandboxes_.find(cgroup);
  if (found == sandboxes_.end()) return std::nullopt;
  const auto held = found->second.read_number();
  return held ? std::optional{*held} : std::nullopt;
}

void ReadyStrike::release() {
  containers_.clear();
  sandboxes_.clear();
}

std::size_t ReadyStrike::descriptors() const {
  auto count = sandboxes_.size();
  for (const auto& [cgroup, kept] : containers_)
    count += kept.container.unread_.size() + kept.container.unprotected_.size();
  return count;
}

bool ReadyStrike::has_room_for(std::size_t more) const { return descriptors() + more <= descriptors_of_own(); }

}  // namespace evictd::evict
