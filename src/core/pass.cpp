#include "core/pass.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "core/eviction_message.hpp"
#include "core/eviction_order.hpp"
#include "core/filesystem_layout.hpp"
#include "core/grace_period.hpp"
#include "core/local_storage.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"

namespace evictd::core {
namespace {

/// What may be removed from the node before a pod has to go (kubelet-spec section 5).
ReclaimNode reclaim_for(const Threshold& threshold, FilesystemLayout layout) {
  ReclaimNode reclaim{.threshold = threshold};
  const auto signal = threshold.signal;
  if (!is_disk(signal) || (layout.dedicated_imagefs && !layout.split && is_nodefs(signal))) return reclaim;
  reclaim.containers = !layout.split || !is_imagefs(signal);
  reclaim.images = !layout.split || is_imagefs(signal);
  return reclaim;
}

/// Hard: at once. Soft: the configured maximum, or the pod's own where that is shorter (kubelet 1.32). A negative
/// maximum is the shortest.
Duration grace_period(const EvictionPolicy& policy, const Threshold& threshold, const Pod& pod) {
  if (threshold.is_hard()) return Duration::zero();
  const auto most = policy.max_pod_grace_period;
  return std::max<Duration>(least_grace_period, std::min(most, own_grace_period(pod).value_or(most)));
}

/// The largest amount is what others would go for, and what shows best. Nothing where no disk was read.
std::optional<DiskRelease> largest(const std::map<Signal, std::int64_t>& released, const Observations& observations) {
  std::optional<DiskRelease> result;
  for (const auto& [signal, amount] : released)
    if (const auto& before = observations[signal]; before && amount > (result ? result->amount : 0))
      result = {signal, amount, before->available};
  return result;
}

}  // namespace

void PassContext::begin_first_minute(Instant now) {
  if (evictions_in_first_minute > 0) rate_limit.cap(std::exchange(evictions_in_first_minute, 0), now);
}

void PassContext::replace_given_containerfs() {
  if (!containerfs_derived) policy.thresholds = with_given_containerfs_replaced(policy.thresholds, layout);
}

void PassContext::derive_containerfs() {
  if (containerfs_derived) return;
  policy.thresholds = with_derived_containerfs(std::move(policy.thresholds), layout);
  containerfs_derived = true;
}

EvictionOrder PassContext::order() const {
  return EvictionOrder{{.in_flight = in_flight, .back_off = back_off, .unlisted = unlisted, .layout = layout}};
}

std::optional<WakeAt> PassContext::wake_for_change(Instant now) {
  auto time = pressure.next_change(policy.pressure_transition_period, now);
  if (limited_until) time = std::min(time.value_or(*limited_until), *limited_until);
  if (wake_at == time) return std::nullopt;
  wake_at = time;
  return WakeAt{time};
}

std::optional<WakeAt> PassContext::wake_for_new_pods(Instant now) {
  if (without_victim == nullptr || without_victim == pods) return std::nullopt;
  without_victim.reset();
  if (!limited_until) left_short.reset();
  constexpr std::chrono::milliseconds soon{1};  // it lies ahead, as every wake-up that is asked for
  wake_at = now + soon;
  return WakeAt{wake_at};
}

std::optional<ArmLevels> PassContext::levels_to_arm(const Observations& observations) {
  std::vector<Level> levels;
  for (const auto& threshold : policy.thresholds) {
    const auto& observation = observations[threshold.signal];
    if (!observation) continue;
    const Level level{threshold.signal, threshold.value.of(observation->capacity), threshold.is_hard()};
    if (std::ranges::find(levels, level) == levels.end()) levels.push_back(level);
  }
  if (levels == armed) return std::nullopt;
  armed = levels;
  return ArmLevels{std::move(levels)};
}

Pass::Pass(PassContext& context, const Observations& observations, std::vector<Releasing> releasing)
    : context_{context},
      number_{context.passes.begin()},
      observations_{observations},
      releasing_{std::move(releasing)} {}

std::optional<Action> Pass::resume(const Answer& answer, Instant now) {
  if (taken_ == decided_.size()) {
    decided_.clear();
    taken_ = 0;
    go_on(answer, now);
  }
  if (decided_.empty()) return std::nullopt;
  return std::move(decided_[taken_++]);
}

/// The rules in the kubelet's order, from top to bottom: until a question, and on from there once it is answered.
/// (kubelet: managerImpl.synchronize; kubelet-spec sections 3 to 8)
void Pass::go_on(const Answer& answer, Instant now) {
  if (!context_.passes.is_wanted(number_) || !is_answered_by(answer)) return end();
  const auto* measured = std::get_if<PodsMeasured>(&answer);
  const auto* reclaimed = std::get_if<NodeReclaimed>(&answer);

  switch (stage_) {
    case Stage::observe:
      report_pressure(now);
      pods_ = context_.pods;
      if (has_limits()) return ask(Stage::limits, ReadPodUsage{.measure = Measure::LocalStorageLimits, .pods = pods_});
      [[fallthrough]];

    case Stage::limits:
      if (measured != nullptr && evict_violators(measured->usage, now)) return end();
      chosen_ = first_short();
      if (!chosen_) return end();
      if (is_disk(chosen_->threshold.signal)) context_.passes.wait_for_disk(number_);
      if (auto reclaim = reclaim_for(chosen_->threshold, context_.layout); reclaim.containers || reclaim.images)
        return ask(Stage::reclaim, std::move(reclaim));
      [[fallthrough]];

    case Stage::reclaim:
      if (reclaimed != nullptr && is_well(reclaimed->observations)) return end();
      if (!may_hurry() && is_limited(now)) return end();
      pods_ = context_.pods;
      if (!pods_->empty()) return ask(Stage::measure, usage_to_rank_by());
      leave_short(pods_);
      return end();

    case Stage::measure:
      if (is_still_short(*measured, now)) evict_first(*measured, now);
      return end();

    case Stage::over: return;
  }
}

bool Pass::is_answered_by(const Answer& answer) const {
  switch (stage_) {
    case Stage::limits:
    case Stage::measure: return std::holds_alternative<PodsMeasured>(answer);
    case Stage::reclaim: return std::holds_alternative<NodeReclaimed>(answer);
    default: return std::holds_alternative<std::monostate>(answer);
  }
}

void Pass::ask(Stage stage, Action question) {
  decide(std::move(question));
  stage_ = stage;
}

void Pass::end() {
  context_.passes.end(number_);
  stage_ = Stage::over;
}

/// Updates the known pressure, and reports what changed.
void Pass::report_pressure(Instant now) {
  context_.begin_first_minute(now);
  context_.in_flight.update(releasing_);
  context_.replace_given_containerfs();
  const auto& policy = context_.policy;
  auto pressure = context_.pressure.update(policy.thresholds, policy.pressure_transition_period, observations_, now);
  context_.derive_containerfs();
  acting_ = std::move(pressure.acting);
  forget_left_short(now);
  for (const auto& threshold : pressure.crossed)
    if (const auto& observation = observations_[threshold.signal]) decide(ReportCrossing{{threshold, *observation}});
  if (pressure.conditions_changed) decide(ReportConditions{context_.pressure.conditions()});
  decide(context_.wake_for_change(now));
  decide(context_.levels_to_arm(observations_));
}

/// What was left short stays so in a pass that has no news of it: for the sake of memory alone no disk is looked at.
void Pass::forget_left_short(Instant now) {
  if (!context_.left_short) return;
  const auto is_it = [&](const Threshold& threshold) { return threshold.same_as(*context_.left_short); };
  const bool is_short = std::ranges::any_of(context_.pressure.state().acting, is_it);
  const bool is_news = std::ranges::any_of(acting_, is_it, &ActingThreshold::threshold);
  const bool is_over = context_.limited_until && *context_.limited_until <= now;
  if (is_short && !is_news && !is_over) return;
  context_.left_short.reset();
  context_.limited_until.reset();
  context_.without_victim.reset();
}

void Pass::leave_short(PodListPtr without_victim) {
  context_.without_victim = std::move(without_victim);
  context_.left_short = chosen_->threshold;
}

bool Pass::has_limits() const {
  return context_.layout_known && context_.policy.local_storage_isolation &&
         std::ranges::any_of(*pods_, [](const PodPtr& pod) { return has_local_storage_limits(*pod); });
}

/// Evicts all pods beyond a limit of their own; false: there are none.
bool Pass::evict_violators(std::span<const std::optional<PodUsage>> usage, Instant now) {
  bool any = false;
  for (std::size_t i = 0; i < pods_->size() && i < usage.size(); ++i) {
    const auto& pod = (*pods_)[i];
    if (!usage[i] || !context_.in_flight.may_choose(*pod)) continue;
    auto violation = first_violation(*pod, *usage[i], context_.layout);
    if (!violation) continue;
    Eviction eviction{.pod = pod, .cause = violation->limit, .message = {std::move(violation->message), {}}};
    for (const auto signal : all_signals())
      if (is_disk(signal)) eviction.also_released[signal] = ranked(signal, pod, usage[i], context_.layout).usage;
    eviction.disk_release = largest(eviction.also_released, observations_);
    evict(std::move(eviction), now);
    any = true;
  }
  return any;
}

/// The first acting threshold that what is in flight does not already satisfy. While one pass waits for a disk, no
/// other is begun, and none before it is known where images and layers lie, by which it is decided what of a pod counts
/// (kubelet: no pass without it): but memory and process ids do not wait for a disk.
std::optional<Acted> Pass::first_short() const {
  for (const auto& acting : acting_) {
    const auto& observation = observations_[acting.threshold.signal];
    if (!observation) continue;
    if (is_disk(acting.threshold.signal) && (!context_.layout_known || context_.passes.waits_for_disk())) continue;
    if (!context_.in_flight.leaves_short(acting, *observation, context_.layout)) continue;
    return Acted{acting.threshold, *observation};
  }
  return std::nullopt;
}

/// Every threshold counts, of all signals, hard and soft: a reclaim suffices only if the node is well (kubelet:
/// reclaimNodeLevelResources).
bool Pass::is_well(const Observations& observations) const {
  return met(context_.policy.thresholds, observations, Enforce::min_reclaim).empty();
}

/// Says so if as many pods have gone as may.
bool Pass::is_limited(Instant now) {
  auto& limit = context_.rate_limit;
  context_.limited_until = limit.closed_until(now);
  if (!context_.limited_until) return false;
  context_.left_short = chosen_->threshold;
  decide(RateLimited{*chosen_, *context_.limited_until, limit.is_capped(now)});
  decide(context_.wake_for_change(now));
  return true;
}

/// Whether a pod may be chosen that is going already: no limit counts it again.
bool Pass::may_hurry() const {
  return std::ranges::any_of(*context_.pods,
                             [&](const PodPtr& pod) { return context_.in_flight.may_hurry(*pod, chosen_->threshold); });
}

ReadPodUsage Pass::usage_to_rank_by() const {
  const auto& threshold = chosen_->threshold;
  const auto order = context_.order();
  ReadPodUsage question{.measure = measure_for(rank_by(threshold.signal)), .pods = pods_};
  question.eligibilities.reserve(pods_->size());
  for (const auto& pod : *pods_) question.eligibilities.push_back(order.eligibility(*pod, threshold));
  return question;
}

/// Whether what the pass began with is still so now that the pods were measured. Other passes may have evicted while a
/// disk was walked, which counts. Memory is answered before another pass can begin; what its victims have given back
/// since the node was read would count twice.
bool Pass::is_still_short(const PodsMeasured& measured, Instant now) {
  const auto& [threshold, before] = *chosen_;
  const auto& fresh = measured.fresh;
  const auto observation = fresh ? (*fresh)[threshold.signal] : before;
  if (!observation) return false;  // the next pass decides
  if (fresh && !is_met(threshold, *fresh, Enforce::min_reclaim)) {
    decide(Recovered{{threshold, *observation}});
    return false;
  }
  if (!is_disk(threshold.signal)) return true;
  for (std::size_t i = 0; i < pods_->size() && i < measured.usage.size(); ++i)
    context_.in_flight.measured(threshold.signal, *observation,
                                ranked(threshold.signal, (*pods_)[i], measured.usage[i], context_.layout));
  const ActingThreshold acting{.threshold = threshold, .unresolved = true};  // it has acted already
  return context_.in_flight.leaves_short(acting, *observation, context_.layout) && (may_hurry() || !is_limited(now));
}

void Pass::evict_first(const PodsMeasured& measured, Instant now) {
  const auto& [threshold, observation] = *chosen_;
  const auto order = context_.order();
  auto ranking = order.ranking(threshold, *pods_, measured.usage, now);
  if (pods_ != context_.pods) leave_out_gone(ranking, *context_.pods);
  // A disk that does not answer for them must not make them the first to go.
  leave_out(ranking, *pods_, measured.out_of_reach);
  order.prefer_listed(ranking, *chosen_);
  const bool limited = context_.rate_limit.closed_until(now).has_value();
  if (limited)
    std::erase_if(ranking, [&](const RankedPod& r) { return !context_.in_flight.may_hurry(*r.pod, threshold); });

  const auto victim = std::ranges::find_if(ranking, may_go);
  if (victim == ranking.end() && limited) return static_cast<void>(is_limited(now));
  if (victim == ranking.end()) {
    decide(NoVictim{*chosen_, std::move(ranking)});
    leave_short(pods_);
    return decide(context_.wake_for_new_pods(now));
  }
  if (waits_for_more(*victim)) return;
  context_.back_off.evicted(*victim, threshold.signal, now);
  const auto position = std::ranges::find(*pods_, victim->pod) - pods_->begin();
  const auto& usage = measured.usage[static_cast<std::size_t>(position)];
  evict({.pod = victim->pod,
         .cause = threshold.signal,
         .grace_period = grace_period(context_.policy, threshold, *victim->pod),
         .message = eviction_message(threshold, observation, *victim->pod, usage),
         .acted = chosen_,
         .ranking = ranking,
         .expected_release = victim->usage},
        now);
}

/// Whether this one would go for next to nothing, less than a hundredth of what the threshold keeps free, while more
/// than that is still to come back from an earlier victim, which takes the runtime and the disk seconds. The next pass
/// decides anew; no other pod is chosen in its place, since pods that rank behind it are to outlive it.
bool Pass::waits_for_more(const RankedPod& victim) const {
  constexpr std::int64_t next_to_nothing = 100;  // the part of the amount
  const auto& [threshold, observation] = *chosen_;
  if (!is_disk(threshold.signal) || !victim.has_stats) return false;
  const auto least = required(threshold, observation.capacity, Enforce::min_reclaim) / next_to_nothing;
  return victim.usage < least && context_.in_flight.brings(least, threshold, context_.layout);
}

void Pass::evict(Eviction evict, Instant now) {
  const bool hurries = evict.acted && context_.in_flight.may_hurry(*evict.pod, evict.acted->threshold);
  if (evict.acted && !hurries) context_.rate_limit.count(now);
  context_.in_flight.add(evict);
  decide(std::move(evict));
}

}  // namespace evictd::core
