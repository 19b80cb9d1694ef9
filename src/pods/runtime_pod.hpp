#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/pod.hpp"

namespace evictd::pods {

enum class ContainerState : std::uint8_t { Created, Running, Exited, Unknown };

struct RuntimeContainer {
  std::string id;
  std::string name;
  ContainerState state = ContainerState::Unknown;
  std::int64_t pid = 0;  ///< of its first process, 0 while it does not run. It may have ended since: never kill by it.
  std::string cgroup{};  ///< its path below the root of the cgroup hierarchy, named after the id; empty if unknown

  friend bool operator==(const RuntimeContainer&, const RuntimeContainer&) = default;
};

/// A pod as it runs: what it takes to measure and to stop it, beside the pod that the core ranks. Never changed once it
/// is published.
struct RuntimePod {
  core::PodPtr pod{};
  std::string sandbox_id{};
  std::vector<RuntimeContainer> containers{};  ///< in the order of their creation, those that have exited as well
  std::string cgroup_parent{};                 ///< as the runtime was given it; "" if it was not
  /// The pod's own cgroup below the root of the hierarchy, with all containers and the sandbox in it. Empty if the pod
  /// has none to itself: then only the containers' cgroups are the pod's.
  std::string cgroup{};
};

/// Whether a container of it does, as far as the runtime tells.
[[nodiscard]] inline bool runs(const RuntimePod& pod) {
  return std::ranges::any_of(pod.containers,
                             [](const auto& container) { return container.state == ContainerState::Running; });
}

/// The cgroups that are the pod's alone: its own, or else those of its containers, as far as they are known.
[[nodiscard]] inline std::vector<std::string> own_cgroups(const RuntimePod& pod) {
  if (!pod.cgroup.empty()) return {pod.cgroup};
  std::vector<std::string> cgroups;
  for (const auto& container : pod.containers)
    if (!container.cgroup.empty()) cgroups.push_back(container.cgroup);
  return cgroups;
}

using RuntimePodPtr = std::shared_ptr<const RuntimePod>;

}  // namespace evictd::pods
