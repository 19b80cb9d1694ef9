#include "core/back_off.hpp"

#include <string_view>

namespace evictd::core {

std::string controller_of(const Pod& pod) {
  constexpr std::size_t suffix = 5;
  constexpr std::string_view alphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string_view name = pod.name;
  if (name.size() > suffix + 1 && name[name.size() - suffix - 1] == '-' &&
      name.substr(name.size() - suffix).find_first_not_of(alphabet) == std::string_view::npos)
    name.remove_suffix(suffix + 1);
  return pod.name_space + "/" + std::string(name);
}

void BackOff::evicted(const Pod& pod, Instant now) {
  if (time_ > Duration::zero()) state_.controllers.insert_or_assign(controller_of(pod), now + time_);
}

void BackOff::pods_changed(const PodList& pods, Instant now) {
  std::erase_if(state_.controllers, [&](const auto& entry) { return entry.second <= now; });
  decltype(state_.known) listed;
  for (const auto& pod : pods) {
    listed.insert(pod->uid);
    if (state_.known.contains(pod->uid) || state_.controllers.empty()) continue;
    const auto controller = state_.controllers.find(controller_of(*pod));
    if (controller != state_.controllers.end()) state_.held.insert_or_assign(pod->uid, controller->second);
  }
  state_.known.swap(listed);
  std::erase_if(state_.held,
                [&](const auto& entry) { return entry.second <= now || !state_.known.contains(entry.first); });
}

bool BackOff::holds(const Pod& pod, Instant now) const {
  const auto held = state_.held.find(pod.uid);
  return held != state_.held.end() && now < held->second;
}

}  // namespace evictd::core
