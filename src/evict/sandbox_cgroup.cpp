#include "evict/sandbox_cgroup.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "evict/ready_strike.hpp"
#include "node/cgroup_processes.hpp"
#include "node/memory_cgroup.hpp"
#include "os/directory.hpp"

namespace evictd::evict {
namespace {

/// pause holds less than 1 MiB; runc, which starts it, has a copy of itself of some 15 MiB charged to the same cgroup.
constexpr std::int64_t most_without_work = 32 << 20;

/// "ID" or "PREFIX-ID.scope".
bool carries(std::string_view name, std::string_view id) {
  constexpr std::string_view suffix = ".scope";
  if (id.empty()) return false;
  if (name == id) return true;
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  return name.ends_with(id) && name.substr(0, name.size() - id.size()).ends_with('-');
}

/// How its cgroup is called if the runtime names it as it names the containers'. Empty where that cannot be said.
std::string expected_name(const pods::RuntimePod& pod) {
  const auto& id = pod.sandbox_id;
  if (id.find_first_of("./") != std::string::npos) return {};
  for (const auto& container : pod.containers) {
    auto name = container.cgroup.substr(container.cgroup.rfind('/') + 1);
    if (carries(name, container.id)) return name.replace(name.rfind(container.id), container.id.size(), id);
  }
  return id;
}

/// As found by its name alone: a look at one file, which most pods' is.
std::optional<SandboxCgroup> find_by_name(const node::CgroupHierarchy& hierarchy, const pods::RuntimePod& pod,
                                          const ReadyStrike* ready) {
  const auto cgroup = expected_sandbox_cgroup(pod);
  if (cgroup.empty()) return std::nullopt;
  SandboxCgroup sandbox{.name = cgroup.substr(pod.cgroup.size() + 1)};
  if (const auto held = ready != nullptr ? ready->usage(cgroup) : std::nullopt) {
    sandbox.held = *held;
    return sandbox;
  }
  const auto held = node::memory_usage(hierarchy, cgroup);
  if (!held) return std::nullopt;
  sandbox.held = *held;
  return sandbox;
}

bool is_container(std::string_view name, const pods::RuntimePod& pod) {
  return std::ranges::any_of(pod.containers, [&](const auto& container) { return carries(name, container.id); });
}

/// cgroupfs gives out rising inode numbers; a directory's times are those of the first look at it. Empty: none is left.
std::string made_first(const os::Directory& pod, const std::vector<std::string>& names) {
  std::string first;
  auto lowest = std::numeric_limits<std::uint64_t>::max();
  for (const auto& name : names) {
    const auto directory = pod.subdirectory(name);
    if (!directory || directory->inode() >= lowest) continue;
    lowest = directory->inode();
    first = name;
  }
  return first;
}

/// Among all that are there.
std::optional<SandboxCgroup> find_by_listing(const node::CgroupHierarchy& hierarchy, const pods::RuntimePod& pod) {
  const auto directory = hierarchy.memory(pod.cgroup);
  if (!directory) return std::nullopt;
  // A pod with more is left without: whoever made them may have made one that looks like it.
  constexpr std::size_t most_entries = 1024;
  const auto listed = directory->subdirectories_within(most_entries);
  if (!listed || !*listed) return std::nullopt;
  const auto& names = **listed;

  SandboxCgroup sandbox;
  const auto named = std::ranges::find_if(names, [&](const auto& name) { return carries(name, pod.sandbox_id); });
  const bool known = named != names.end();
  sandbox.name = known ? *named : made_first(*directory, names);
  if (sandbox.name.empty()) return std::nullopt;

  const auto path = pod.cgroup + '/' + sandbox.name;
  if (!known) {
    if (is_container(sandbox.name, pod)) return std::nullopt;
    node::WalkLimit one_process{.processes = 1, .cgroups = 8};
    const auto processes = node::processes_within(one_process, hierarchy, path);
    if (!processes || !*processes || (*processes)->size() != 1) return std::nullopt;
  }
  sandbox.held = node::memory_usage(hierarchy, path).value_or(0);
  return sandbox;
}

}  // namespace

std::string expected_sandbox_cgroup(const pods::RuntimePod& pod) {
  const auto name = expected_name(pod);
  return pod.cgroup.empty() || name.empty() ? std::string{} : pod.cgroup + '/' + name;
}

std::optional<SandboxCgroup> sandbox_cgroup(const node::CgroupHierarchy& hierarchy, const pods::RuntimePod& pod,
                                            const ReadyStrike* ready) {
  if (pod.cgroup.empty()) return std::nullopt;
  auto sandbox = find_by_name(hierarchy, pod, ready);
  if (!sandbox) sandbox = find_by_listing(hierarchy, pod);
  if (sandbox && sandbox->held > most_without_work) return std::nullopt;
  return sandbox;
}

}  // namespace evictd::evict
