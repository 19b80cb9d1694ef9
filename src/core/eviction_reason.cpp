#include "core/eviction_reason.hpp"

#include <algorithm>
#include <array>

#include "core/eviction_order.hpp"
#include "core/saturating.hpp"
#include "core/threshold.hpp"

namespace evictd::core {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

std::int64_t whole_mebibytes(std::int64_t bytes) { return bytes / mebibyte * mebibyte; }
std::int64_t rounded_up(std::int64_t bytes) { return whole_mebibytes(saturating_add(bytes, mebibyte - 1)); }

std::optional<std::int64_t> where_above_zero(std::int64_t bytes) {
  return bytes > 0 ? std::optional{bytes} : std::nullopt;
}

std::optional<std::int64_t> request_to_go_later(Signal signal, const RankedPod& first, const RankedPod& next) {
  const auto just_less_over = saturating_add(saturating_subtract(first.usage, next.usage - next.request), 1);
  const std::array candidates{just_less_over, first.usage};
  std::optional<std::int64_t> least;
  for (const auto candidate : candidates) {
    auto asking = first;
    asking.request = rounded_up(std::max<std::int64_t>(candidate, 1));
    if (asking.request <= first.request || compare(signal, asking, next) <= 0) continue;
    least = std::min(least.value_or(asking.request), asking.request);
  }
  return least;
}

}  // namespace

std::string_view name(RankingRule rule) {
  switch (rule) {
    case RankingRule::None: return "none";
    case RankingRule::NoStats: return "no stats";
    case RankingRule::Exceeds: return "exceeds its request";
    case RankingRule::Priority: return "priority";
    case RankingRule::FurtherOver: return "further over its request";
    case RankingRule::NearerToIt: return "nearer to its request";
    case RankingRule::NotByNumbers: return "not by its numbers";
  }
  return "";
}

RankingRule deciding_rule(Signal signal, const RankedPod& first, const RankedPod& next) {
  const auto priority = [](const RankedPod& ranked) { return ranked.pod->priority.value_or(0); };
  if (compare(signal, first, next) > 0) return RankingRule::NotByNumbers;
  if (first.has_stats != next.has_stats) return RankingRule::NoStats;
  if (first.has_stats && exceeds_request(signal, first) != exceeds_request(signal, next)) return RankingRule::Exceeds;
  if (priority(first) != priority(next)) return RankingRule::Priority;
  const auto over = first.usage - first.request;
  if (!first.has_stats || over == next.usage - next.request) return RankingRule::None;
  return over > 0 ? RankingRule::FurtherOver : RankingRule::NearerToIt;
}

std::optional<EvictionReason> reason_for(const Eviction& eviction) {
  const auto& ranking = eviction.ranking;
  const auto victim =
      std::ranges::find(ranking, eviction.pod->uid, [](const RankedPod& ranked) { return ranked.pod->uid; });
  if (!eviction.acted || victim == ranking.end()) return std::nullopt;
  const auto& [threshold, observation] = *eviction.acted;
  const auto signal = threshold.signal;
  const auto found = std::find_if(victim + 1, ranking.end(), may_go);
  const auto below = [&](Enforce what) {
    return saturating_subtract(required(threshold, observation.capacity, what), observation.available);
  };

  EvictionReason reason{.victim = &*victim,
                        .next = found == ranking.end() ? nullptr : &*found,
                        .missing = below(Enforce::value_only),
                        .reclaimed = below(Enforce::min_reclaim)};
  if (reason.next != nullptr) {
    reason.rule = deciding_rule(signal, *victim, *reason.next);
    reason.request = request_to_go_later(signal, *victim, *reason.next);
    reason.next_is_enough = reason.next->usage >= reason.reclaimed;
  }
  reason.limit = where_above_zero(whole_mebibytes(saturating_subtract(victim->usage, reason.missing)));
  reason.threshold = where_above_zero(whole_mebibytes(observation.available));
  return reason;
}

}  // namespace evictd::core
