#include "core/oom_steering.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace evictd::core {
namespace {

constexpr int no_score = std::numeric_limits<int>::min() / 2;

/// The highest of its processes that may be raised; those that somebody protects are nobody's choice.
int score(const OomPod& pod, std::optional<int> raised, std::int64_t memory) {
  int highest = no_score;
  for (const auto& process : pod.processes)
    if (process.adj >= 0)
      highest = std::max(highest, oom_share(process.bytes, memory) + raised_adj(process.adj, raised, pod.most));
  return highest;
}

/// To what the pod must be raised to have this score; absent: it has it, or nothing of it may be raised.
std::optional<int> needed(const OomPod& pod, int wanted, std::int64_t memory) {
  if (score(pod, std::nullopt, memory) >= wanted) return std::nullopt;
  std::optional<int> least;
  for (const auto& process : pod.processes) {
    if (process.adj < 0) continue;
    const auto adj = std::min(wanted - oom_share(process.bytes, memory), pod.most);
    least = std::min(least.value_or(adj), adj);
  }
  while (least && pod.taken.contains(*least)) --*least;
  return least;
}

}  // namespace

int oom_share(std::int64_t bytes, std::int64_t memory) {
  if (bytes <= 0 || memory <= 0) return 0;
  __extension__ using Wide = __int128;
  return static_cast<int>(std::min<Wide>(Wide{1000} * bytes / memory, 1000));
}

int raised_adj(int own, std::optional<int> raised, int most) {
  if (!raised || own < 0) return own;
  return std::max(own, std::min(*raised, most));
}

std::vector<std::optional<int>> steer(std::span<const OomPod> pods, int behind, std::int64_t memory) {
  // What each would need, from the last on.
  std::vector<int> wanted(pods.size(), no_score);
  int floor = behind;
  for (auto i = pods.size(); i-- > 0;) {
    if (score(pods[i], std::nullopt, memory) == no_score) continue;
    wanted[i] = std::max(floor + steering_gap, score(pods[i], std::nullopt, memory));
    floor = wanted[i];
  }
  // What it can have, from the first on: below all that go before it.
  std::vector<std::optional<int>> raised(pods.size());
  int ceiling = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (wanted[i] == no_score) continue;
    raised[i] = needed(pods[i], std::min(wanted[i], ceiling), memory);
    ceiling = std::min(ceiling, score(pods[i], raised[i], memory) - steering_gap);
  }
  return raised;
}

}  // namespace evictd::core
