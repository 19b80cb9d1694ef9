#include "core/eviction_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace evictd::core {

bool may_go(const RankedPod& ranked) { return !is_critical(*ranked.pod) && !ranked.nothing_to_gain; }

void leave_out_gone(std::vector<RankedPod>& ranking, const PodList& on_node) {
  std::set<std::string_view> here;
  for (const auto& pod : on_node) here.insert(pod->uid);
  std::erase_if(ranking, [&](const RankedPod& ranked) { return !here.contains(ranked.pod->uid); });
}

void leave_out(std::vector<RankedPod>& ranking, const PodList& pods, const std::vector<bool>& marked) {
  std::set<std::string_view> left_out;
  for (std::size_t i = 0; i < pods.size() && i < marked.size(); ++i)
    if (marked[i]) left_out.insert(pods[i]->uid);
  std::erase_if(ranking, [&](const RankedPod& ranked) { return left_out.contains(ranked.pod->uid); });
}

Eligibility EvictionOrder::eligibility(const Pod& pod, const Threshold& threshold) const {
  return is_critical(pod) ? Eligibility::excluded : place(pod, threshold);
}

Eligibility EvictionOrder::place(const Pod& pod, const Threshold& threshold) const {
  if (!known_.in_flight.may_choose(pod, threshold)) return Eligibility::excluded;
  if (known_.in_flight.is_stuck(pod)) return Eligibility::last;
  if (!known_.unlisted.contains(pod.uid)) return Eligibility::candidate;
  return is_disk(threshold.signal) ? Eligibility::excluded : Eligibility::unlisted;
}

std::vector<RankedPod> EvictionOrder::ranking(const Threshold& threshold, const PodList& pods,
                                              std::span<const std::optional<PodUsage>> usage, Instant now) const {
  auto ranking = rank(threshold.signal, pods, usage, known_.layout);
  std::erase_if(ranking, [&](const RankedPod& r) { return place(*r.pod, threshold) == Eligibility::excluded; });
  known_.back_off.settle_ties(ranking, threshold.signal, now);
  std::ranges::stable_partition(
      ranking, [&](const RankedPod& ranked) { return eligibility(*ranked.pod, threshold) != Eligibility::last; });
  return ranking;
}

void EvictionOrder::prefer_listed(std::vector<RankedPod>& ranking, const Acted& acted) const {
  const auto& [threshold, observation] = acted;
  const auto first = std::ranges::find_if(ranking, may_go);
  if (first == ranking.end() || !known_.unlisted.contains(first->pod->uid)) return;
  const auto deficit = required(threshold, observation.capacity, Enforce::min_reclaim) -
                       std::max<std::int64_t>(0, observation.available);
  const auto enough = std::max(deficit, first->usage / 2);
  const auto instead = std::find_if(first + 1, ranking.end(), [&](const RankedPod& r) {
    return eligibility(*r.pod, threshold) == Eligibility::candidate && r.has_stats && !r.at_most && r.usage >= enough &&
           exceeds_request(threshold.signal, r);
  });
  if (instead != ranking.end()) std::rotate(first, instead, instead + 1);
}

}  // namespace evictd::core
