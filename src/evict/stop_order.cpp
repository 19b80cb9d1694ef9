#include "evict/stop_order.hpp"

#include <algorithm>
#include <optional>
#include <ranges>
#include <string_view>

#include "core/pod.hpp"

namespace evictd::evict {
namespace {

using Containers = std::vector<core::Container>;

const core::Container* find_spec(const Containers& containers, std::string_view name) {
  const auto found = std::ranges::find(containers, name, &core::Container::name);
  return found == containers.end() ? nullptr : &*found;
}

const core::PreStop* hook_of(const core::Pod& pod, const pods::RuntimeContainer& container) {
  if (container.state != pods::ContainerState::Running) return nullptr;
  const auto* spec = find_spec(pod.containers, container.name);
  if (spec == nullptr) spec = find_spec(pod.init_containers, container.name);
  return spec != nullptr && spec->pre_stop ? &*spec->pre_stop : nullptr;
}

std::optional<std::size_t> place_of(const std::vector<StopTurn>& turns, std::string_view name) {
  const auto found =
      std::ranges::find(turns, name, [](const auto& turn) -> std::string_view { return turn.container->name; });
  if (found == turns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - turns.begin());
}

}  // namespace

std::vector<StopTurn> stop_order(const pods::RuntimePod& pod) {
  const auto& spec = *pod.pod;
  std::vector<StopTurn> turns;
  for (const auto& container : pod.containers)
    if (container.state != pods::ContainerState::Exited)
      turns.push_back({.container = &container, .hook = hook_of(spec, container)});

  std::vector<std::size_t> main;
  for (std::size_t place = 0; place < turns.size(); ++place)
    if (find_spec(spec.containers, turns[place].container->name) != nullptr) main.push_back(place);
  std::optional<std::size_t> next;
  for (const auto& sidecar : spec.init_containers | std::views::reverse) {
    if (!sidecar.restart_always) continue;
    const auto place = place_of(turns, sidecar.name);
    if (place) turns[*place].after = main;
    if (place && next) turns[*place].after.push_back(*next);
    next = place;
  }
  return turns;
}

}  // namespace evictd::evict
