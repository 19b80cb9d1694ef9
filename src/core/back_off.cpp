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

void BackOff::evicted(const RankedPod& victim, Signal signal, Instant now) {
  if (time_ <= Duration::zero()) return;
  std::erase_if(state_, [&](const auto& entry) { return entry.second.until <= now; });
  state_.insert_or_assign(
      controller_of(*victim.pod),
      Eviction{.until = now + time_, .by = rank_by(signal), .usage = victim.has_stats ? victim.usage : 0});
}

bool BackOff::holds(const RankedPod& ranked, Signal signal, Instant now) const {
  if (state_.empty()) return false;
  const auto found = state_.find(controller_of(*ranked.pod));
  if (found == state_.end() || now >= found->second.until) return false;
  return found->second.by == rank_by(signal) && ranked.usage <= found->second.usage;
}

}  // namespace evictd::core
