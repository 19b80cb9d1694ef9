#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "core/pod.hpp"
#include "core/ranked_pod.hpp"
#include "core/signal.hpp"

namespace evictd::core {

/// What pods made by the same controller have in common: "namespace/name", without the five characters that the API
/// server appends to generated names (alphabet bcdfghjklmnpqrstvwxz2456789).
[[nodiscard]] std::string controller_of(const Pod& pod);

/// Remembers which controllers have just lost a pod: where the kubelet's ranking puts pods equal, theirs go behind the
/// others for a while (settle_ties in core/eviction_order.hpp), since evicting the controller's next pod as well frees
/// nothing for long. A pod that has grown past what its predecessor was evicted at has no claim.
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
  /// Whether the pod goes behind its equals.
  [[nodiscard]] bool holds(const RankedPod& ranked, Signal signal, Instant now) const;

  [[nodiscard]] const State& state() const { return state_; }
  void restore(State state) { state_ = std::move(state); }

 private:
  Duration time_;
  State state_;
};

}  // namespace evictd::core
