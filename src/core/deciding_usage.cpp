#include "core/deciding_usage.hpp"

#include <queue>

#include "core/rank.hpp"

namespace evictd::core {

std::vector<std::optional<PodUsage>> read_deciding_usage(const PodList& pods, std::span<const Standing> standings,
                                                         std::span<const std::optional<std::int64_t>> at_most,
                                                         const ReadWorkingSet& read) {
  std::vector<std::optional<PodUsage>> usage(pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i)
    if (at_most[i]) usage[i] = PodUsage{.working_set = at_most[i], .at_most = true};

  struct Entry {
    RankedPod ranked;
    Standing standing;
    std::size_t place;
  };
  const auto goes_later = [](const Entry& a, const Entry& b) {
    if (a.standing != b.standing) return a.standing > b.standing;
    const auto order = compare(Signal::MemoryAvailable, a.ranked, b.ranked);
    return order != 0 ? order > 0 : a.place > b.place;
  };
  std::vector<Entry> entries;
  entries.reserve(pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i)
    if (standings[i] != Standing::excluded)
      entries.push_back({ranked(Signal::MemoryAvailable, pods[i], usage[i], {}), standings[i], i});
  std::priority_queue queue{goes_later, std::move(entries)};
  while (!queue.empty() && queue.top().ranked.at_most) {
    auto first = queue.top();
    queue.pop();
    const auto exact = read(first.place);
    usage[first.place] = exact ? std::optional(PodUsage{.working_set = exact}) : std::nullopt;
    first.ranked = ranked(Signal::MemoryAvailable, pods[first.place], usage[first.place], {});
    queue.push(std::move(first));
  }
  return usage;
}

}  // namespace evictd::core
