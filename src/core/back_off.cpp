#include "core/back_off.hpp"

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
  if (time_ > Duration::zero()) controllers_.insert_or_assign(controller_of(pod), now + time_);
}

void BackOff::pods_changed(const PodList& pods, Instant now) {
  std::erase_if(controllers_, [&](const auto& entry) { return entry.second <= now; });
  decltype(known_) listed;
  for (const auto& pod : pods) {
    listed.insert(pod->uid);
    if (known_.contains(pod->uid) || controllers_.empty()) continue;
    const auto controller = controllers_.find(controller_of(*pod));
    if (controller != controllers_.end()) held_.insert_or_assign(pod->uid, controller->second);
  }
  known_.swap(listed);
  std::erase_if(held_, [&](const auto& entry) { return entry.second <= now || !known_.contains(entry.first); });
}

bool BackOff::holds(const Pod& pod, Instant now) const {
  const auto held = held_.find(pod.uid);
  return held != held_.end() && now < held->second;
}

}  // namespace evictd::core
