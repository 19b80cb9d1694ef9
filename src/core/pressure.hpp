#pragma once
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "core/observation.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"

namespace evictd::core {

using NodeConditions = std::set<NodeCondition>;

/// A threshold that acts in this pass.
struct ActingThreshold {
  Threshold threshold;
  bool unresolved = false;  ///< it acted in the pass before and its minimum reclaim is not reached yet

  friend bool operator==(const ActingThreshold&, const ActingThreshold&) = default;
};

/// What lies between observations and evicting: grace periods, hysteresis by minimum reclaim, the transition period of
/// node conditions, and the rule that only fresh numbers act (kubelet-spec section 3, steps 7 to 14).
class PressureTracker {
 public:
  struct Pass {
    std::vector<ActingThreshold> acting;  ///< by precedence; what may evict now
    std::vector<Threshold> crossed;       ///< met now, not met in the pass before
    bool conditions_changed = false;
  };

  /// A threshold that is met, or held by its minimum reclaim.
  struct Met {
    Threshold threshold;
    Instant since;

    friend bool operator==(const Met&, const Met&) = default;
  };
  using LastObserved = std::vector<std::pair<NodeCondition, Instant>>;

  /// What a restart would have to learn anew.
  struct State {
    std::vector<Met> met{};           ///< kubelet: thresholdsFirstObservedAt
    LastObserved last_observed{};     ///< kubelet: nodeConditionsLastObservedAt
    std::vector<Threshold> acting{};  ///< kubelet: thresholdsMet, before the fresh-stats filter

    friend bool operator==(const State&, const State&) = default;
  };

  [[nodiscard]] const State& state() const { return state_; }
  /// Goes on from what an earlier one knew; retain() has to follow.
  void restore(State state);

  /// Conditions were observed then, and by nothing since. Which of them still hold the next update() finds.
  void observe_as_of(LastObserved last_observed) { state_.last_observed = std::move(last_observed); }

  [[nodiscard]] Pass update(std::span<const Threshold> thresholds, Duration transition_period,
                            const Observations& observations, Instant now);

  [[nodiscard]] const NodeConditions& conditions() const { return conditions_; }

  /// Since when the threshold has been met, or held by its minimum reclaim, without a break.
  [[nodiscard]] std::optional<Instant> met_since(const Threshold& threshold) const;

  /// When the passing of time alone changes something: a grace period or a transition period ends.
  [[nodiscard]] std::optional<Instant> next_change(Duration transition_period, Instant now) const;

  /// Forgets what belongs to thresholds that are not configured any more. Conditions end by their transition period.
  void retain(std::span<const Threshold> thresholds);

 private:
  [[nodiscard]] std::vector<Threshold> met_or_unresolved(std::span<const Threshold> thresholds,
                                                         const Observations& observations) const;
  void update_conditions(Duration transition_period, Instant now);
  void name_conditions();
  [[nodiscard]] bool is_fresh(Signal signal, const Observations& observations) const;

  State state_;
  NodeConditions conditions_;
  Observations previous_;
};

}  // namespace evictd::core
