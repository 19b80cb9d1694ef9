#include "core/pressure.hpp"

#include <algorithm>

#include "core/signal.hpp"

namespace evictd::core {
namespace {

bool contains(std::span<const Threshold> thresholds, const Threshold& wanted) {
  return std::ranges::any_of(thresholds, [&](const Threshold& threshold) { return threshold.same_as(wanted); });
}

}  // namespace

std::vector<Threshold> PressureTracker::met_or_unresolved(std::span<const Threshold> thresholds,
                                                          const Observations& observations) const {
  auto result = met(thresholds, observations, Enforce::value_only);
  for (auto& unresolved : met(state_.acting, observations, Enforce::min_reclaim))
    if (!contains(result, unresolved)) result.push_back(std::move(unresolved));
  return result;
}

bool PressureTracker::is_fresh(Signal signal, const Observations& observations) const {
  const auto& now = observations[signal];
  if (!now) return false;
  const auto& before = previous_[signal];
  return !before || !now->time || !before->time || *now->time > *before->time;
}

void PressureTracker::update_conditions(Duration transition_period, Instant now) {
  for (const auto& met : state_.met) {
    const auto condition = condition_of(met.threshold.signal);
    const auto known = std::ranges::find(state_.last_observed, condition, &std::pair<NodeCondition, Instant>::first);
    if (known == state_.last_observed.end())
      state_.last_observed.emplace_back(condition, now);
    else
      known->second = now;
  }
  std::erase_if(state_.last_observed, [&](const auto& entry) { return now - entry.second >= transition_period; });
  name_conditions();
}

void PressureTracker::name_conditions() {
  conditions_.clear();
  for (const auto& [condition, time] : state_.last_observed) conditions_.insert(condition);
}

void PressureTracker::restore(State state) {
  state_ = std::move(state);
  name_conditions();
}

PressureTracker::Pass PressureTracker::update(std::span<const Threshold> thresholds, Duration transition_period,
                                              const Observations& observations, Instant now) {
  Pass pass;
  std::vector<Met> met;
  for (auto& threshold : met_or_unresolved(thresholds, observations)) {
    const auto known =
        std::ranges::find_if(state_.met, [&](const Met& before) { return before.threshold.same_as(threshold); });
    if (known == state_.met.end()) pass.crossed.push_back(threshold);
    met.push_back({std::move(threshold), known == state_.met.end() ? now : known->since});
  }
  state_.met = std::move(met);

  const auto conditions_before = conditions_;
  update_conditions(transition_period, now);
  pass.conditions_changed = conditions_ != conditions_before;

  std::vector<Threshold> acting;
  for (const auto& [threshold, since] : state_.met)
    if (now - since >= threshold.grace) acting.push_back(threshold);
  sort_by_precedence(acting);
  for (const auto& threshold : acting)
    if (is_fresh(threshold.signal, observations))
      pass.acting.push_back({threshold, contains(state_.acting, threshold)});
  state_.acting = std::move(acting);
  previous_ = observations;
  return pass;
}

std::optional<Instant> PressureTracker::met_since(const Threshold& threshold) const {
  const auto known = std::ranges::find_if(state_.met, [&](const Met& met) { return met.threshold.same_as(threshold); });
  if (known == state_.met.end()) return std::nullopt;
  return known->since;
}

std::optional<Instant> PressureTracker::next_change(Duration transition_period, Instant now) const {
  std::optional<Instant> next;
  const auto consider = [&](Instant time) {
    if (time > now && (!next || time < *next)) next = time;
  };
  for (const auto& [threshold, since] : state_.met) consider(since + threshold.grace);
  for (const auto& [condition, time] : state_.last_observed)
    if (time != now) consider(time + transition_period);
  return next;
}

void PressureTracker::retain(std::span<const Threshold> thresholds) {
  std::erase_if(state_.met, [&](const Met& met) { return !contains(thresholds, met.threshold); });
  std::erase_if(state_.acting, [&](const Threshold& threshold) { return !contains(thresholds, threshold); });
  // The new copies take the place of the old ones: their minimum reclaim may be another.
  const auto renew = [&](Threshold& known) {
    known = *std::ranges::find_if(thresholds, [&](const Threshold& threshold) { return threshold.same_as(known); });
  };
  for (auto& met : state_.met) renew(met.threshold);
  for (auto& threshold : state_.acting) renew(threshold);
}

}  // namespace evictd::core
