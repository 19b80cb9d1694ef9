#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "core/pod.hpp"
#include "core/rank.hpp"
#include "core/signal.hpp"

namespace evictd::core {

/// What pods made by the same controller have in common: "namespace/name", without the five characters that the API
/// server appends to generated names (alphabet bcdfghjklmnpqrstvwxz2456789).
[[nodiscard]] std::string controller_of(const Pod& pod);

/// Decides ties: where the kubelet's ranking puts pods equal, those whose controller has just lost a pod go behind the
/// others for a while, since evicting the controller's next pod as well frees nothing for long.
///
/// It never moves a pod past one that the ranking tells apart from it, so it neither shields a pod that exceeds its
/// request nor one of another priority; and a pod that has grown past what its predecessor was evicted at has no claim.
class BackOff {
 public:
  /// The last eviction of one of a controller's pods.
  struct Eviction {
    Instant until{};  ///< for how long it matters
    RankBy by = RankBy::Memory;
    std::int64_t usage = 0;  ///< what the pod used, of what it was ranked by

    friend bool operator==(const Eviction&, const Eviction&) = default;
  };
  /// By controller. It is what a restart would have to learn anew.
  using State = std::map<std::string, Eviction, std::less<>>;

  /// `time`: for how long after an eviction; 0: never.
  explicit BackOff(Duration time) : time_{time} {}

  /// The pod goes because this signal was short.
  void evicted(const RankedPod& victim, Signal signal, Instant now);
  [[nodiscard]] bool holds(const RankedPod& ranked, Signal signal, Instant now) const;
  /// Puts the pods that are held behind their equals. `ranking`: by core::rank. A usage that is only a bound ties with
  /// none.
  void settle_ties(std::vector<RankedPod>& ranking, Signal signal, Instant now) const;

  [[nodiscard]] const State& state() const { return state_; }
  void restore(State state) { state_ = std::move(state); }

 private:
  Duration time_;
  State state_;
};

}  // namespace evictd::core
