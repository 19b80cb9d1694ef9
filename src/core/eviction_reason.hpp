#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/eviction.hpp"
#include "core/ranked_pod.hpp"
#include "core/signal.hpp"

namespace evictd::core {

/// What puts one pod before another: the first of the ranking's rules that tells them apart. (core::compare)
enum class RankingRule : std::uint8_t {
  None,          ///< nothing tells them apart
  NoStats,       ///< its use could not be measured
  Exceeds,       ///< it used more than it asked for, and the other one did not
  Priority,      ///< its priority is lower
  FurtherOver,   ///< it was further over its request
  NearerToIt,    ///< it was nearer to its request, from below
  NotByNumbers,  ///< by its numbers it goes behind: something else put it first
};
/// "none", "no stats", "exceeds its request", "priority", "further over its request", "nearer to its request", "not by
/// its numbers"
[[nodiscard]] std::string_view name(RankingRule rule);
[[nodiscard]] RankingRule deciding_rule(Signal signal, const RankedPod& first, const RankedPod& next);

/// Why a pod went for a threshold, and not the next one, and what would have saved it. Bytes; what would have saved it
/// is in whole MiB.
struct EvictionReason {
  const RankedPod* victim = nullptr;  ///< in the eviction's ranking
  const RankedPod* next = nullptr;    ///< who would have gone in its place; null: no other pod could have gone
  RankingRule rule = RankingRule::None;
  std::int64_t missing = 0;    ///< below the threshold
  std::int64_t reclaimed = 0;  ///< after which no other pod goes: with the threshold's minimum reclaim
  /// The smallest request with which the next pod would have gone before it; absent: none would have done that.
  std::optional<std::int64_t> request{};
  bool next_is_enough = false;  ///< the next one held what was missing, so with that request it would have been saved
  /// The largest limit with which the node would not have been short.
  std::optional<std::int64_t> limit{};
  /// The highest threshold that would not have been met yet.
  std::optional<std::int64_t> threshold{};
};

/// Absent for a pod that no threshold made go, or that is not in its ranking: an earlier evictd chose it. It points
/// into the eviction's ranking.
[[nodiscard]] std::optional<EvictionReason> reason_for(const Eviction& eviction);

}  // namespace evictd::core
