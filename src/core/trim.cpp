#include "core/trim.hpp"

#include "core/eligibility.hpp"
#include "core/eviction_order.hpp"
#include "core/saturating.hpp"

namespace evictd::core {

TrimAfterPass trim_after_pass(const Synchronizer& policy, const Observations& observations, Instant now) {
  const Threshold* soft = nullptr;
  for (const auto& threshold : policy.thresholds()) {
    if (!is_memory(threshold.signal)) continue;
    const auto since = policy.met_since(threshold);
    if (!since) continue;
    if (now - *since >= threshold.grace) return {.pods_go = true};
    if (soft == nullptr) soft = &threshold;
  }
  if (soft == nullptr) return {};
  const auto& observation = observations[soft->signal];
  if (!observation) return {};
  const auto needed = saturating_add(required(*soft, observation->capacity, Enforce::min_reclaim), trim_margin);
  return {.goal = TrimGoal{*soft, *observation, saturating_subtract(needed, observation->available)}};
}

std::optional<TrimGoal> trim_near_hard(std::span<const Threshold> thresholds, const Observations& observations) {
  for (const auto& threshold : thresholds) {
    const auto& observation = observations[threshold.signal];
    if (!is_memory(threshold.signal) || !threshold.is_hard() || !observation) continue;
    const auto needed = required(threshold, observation->capacity, Enforce::value_only);
    if (observation->available < needed) return std::nullopt;
    if (observation->available / 2 >= needed) continue;
    return TrimGoal{threshold, *observation,
                    saturating_add(needed, saturating_subtract(needed, observation->available))};
  }
  return std::nullopt;
}

std::vector<RankedPod> trimmed_pods(const Synchronizer& policy, Signal signal,
                                    std::span<const std::optional<PodUsage>> usage, Instant now) {
  std::vector<RankedPod> pods;
  for (const auto& placed : policy.ranking(signal, *policy.pods(), usage, now))
    if (may_go(placed.ranked) && exceeds_request(signal, placed.ranked) &&
        policy.eligibility(signal, *placed.ranked.pod) == Eligibility::candidate)
      pods.push_back(placed.ranked);
  return pods;
}

}  // namespace evictd::core
