#pragma once
#include <algorithm>
#include <functional>
#include <vector>

#include "pods/runtime_pod.hpp"

namespace evictd::pods {

/// Of each name the container that was created last, without those that have exited: what a pod is and uses now. Where
/// all have exited these stand for the pod until the next one starts. `containers` in the order of their creation,
/// which the result has as well; they outlive it. `exited` and `name` say these things of one of them.
template <class Container, class Exited, class Name>
[[nodiscard]] std::vector<const Container*> current_containers(const std::vector<Container>& containers, Exited exited,
                                                               Name name) {
  const bool all_exited = std::ranges::all_of(containers, exited);
  std::vector<const Container*> current;
  for (const auto& container : containers) {
    if (!all_exited && exited(container)) continue;
    std::erase_if(
        current, [&](const Container* earlier) { return std::invoke(name, *earlier) == std::invoke(name, container); });
    current.push_back(&container);
  }
  return current;
}

/// Those of a pod as it runs. (kubelet: removeTerminatedContainers of its CRI stats, but for a pod of which all have
/// exited)
[[nodiscard]] inline std::vector<const RuntimeContainer*> current_containers(const RuntimePod& pod) {
  const auto exited = [](const RuntimeContainer& container) { return container.state == ContainerState::Exited; };
  return current_containers(pod.containers, exited, &RuntimeContainer::name);
}

}  // namespace evictd::pods
