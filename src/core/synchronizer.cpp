#include "core/synchronizer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "core/eviction_message.hpp"
#include "core/eviction_settings.hpp"
#include "core/filesystem_layout.hpp"
#include "core/grace_period.hpp"
#include "core/local_storage.hpp"
#include "core/observation.hpp"
#include "core/pod.hpp"
#include "core/rank.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"
#include "core/usage.hpp"

namespace evictd::core {
namespace {

struct Reclaimable {
  bool containers = false;
  bool images = false;
};

/// What may be removed from the node before a pod has to go (kubelet-spec section 5).
Reclaimable reclaimable(Signal signal, FilesystemLayout layout) {
  if (!is_disk(signal)) return {};
  if (layout.split) return {.containers = !is_imagefs(signal), .images = is_imagefs(signal)};
  if (layout.dedicated_imagefs && is_nodefs(signal)) return {};
  return {.containers = true, .images = true};
}

Measure measure_for(Signal signal) {
  switch (resource_of(signal)) {
    case Resource::Memory: return Measure::Memory;
    case Resource::Pids: return Measure::Processes;
    default: return Measure::Disk;
  }
}

}  // namespace

Synchronizer::Synchronizer(EvictionPolicy policy, SynchronizerOptions options)
    : policy_{std::move(policy)},
      options_{options},
      in_flight_{options.in_flight_reclaim},
      back_off_{options.back_off},
      rate_limit_{options.max_evictions_per_minute} {}

Synchronizer::State Synchronizer::state() const {
  return {.pressure = pressure_.state(),
          .in_flight = in_flight_.entries(),
          .back_off = back_off_.state(),
          .rate_limit = rate_limit_.state(),
          .layout = layout_,
          .containerfs_derived = containerfs_derived_};
}

void Synchronizer::restore(State state) {
  layout_ = state.layout;
  if (state.containerfs_derived) derive_containerfs();
  pressure_.restore(std::move(state.pressure));
  pressure_.retain(policy_.thresholds);
  in_flight_.restore(std::move(state.in_flight));
  back_off_.restore(std::move(state.back_off));
  rate_limit_.restore(std::move(state.rate_limit));
}

Actions Synchronizer::step(const Event& event, Instant now) {
  if (options_.evictions_in_first_minute > 0)
    rate_limit_.cap(std::exchange(options_.evictions_in_first_minute, 0), now);
  actions_.clear();
  std::visit([&](const auto& known) { on(known, now); }, event);
  return std::move(actions_);
}

void Synchronizer::on(const NodeObserved& event, Instant now) {
  // An answer to an older pass would act on older numbers. Only disk passes wait on, since measuring a disk takes
  // longer than the time between two passes.
  std::erase_if(waiting_, [](const Selection& selection) {
    return !selection.chosen || !is_disk(selection.chosen->threshold.signal);
  });
  in_flight_.update(event.releasing);
  limited_until_.reset();
  without_victim_.reset();

  auto pass = pressure_.update(policy_.thresholds, policy_.pressure_transition_period, event.observations, now);
  derive_containerfs();
  report_pressure(pass, event.observations, now);
  if (policy_.thresholds.empty() && !policy_.local_storage_isolation) return;
  check_limits({.acting = std::move(pass.acting), .observations = event.observations, .pods = pods_}, now);
}

void Synchronizer::on(const PodsChanged& event, Instant now) {
  pods_ = event.pods;
  unlisted_ = event.unlisted;
  in_flight_.retain(*pods_, now);
  look_at_new_pods(now);
}

void Synchronizer::on(const PodsMeasured& event, Instant now) {
  if (auto selection = take(event.request, Selection::Stage::limits)) {
    evict_violators(*selection, event.usage, now);
    const bool evicted =
        std::ranges::any_of(actions_, [](const Action& a) { return std::holds_alternative<Evict>(a); });
    if (!evicted) choose_threshold(*std::move(selection), now);
    return;
  }
  const auto selection = take(event.request, Selection::Stage::measure);
  if (selection && still_acts(*selection, event.fresh, now)) evict_first(*selection, event, now);
}

void Synchronizer::on(const NodeReclaimed& event, Instant now) {
  auto selection = take(event.request, Selection::Stage::reclaim);
  if (!selection) return;
  // Every threshold counts, of all signals, hard and soft: a reclaim suffices only if the node is well (kubelet:
  // reclaimNodeLevelResources).
  if (!met(policy_.thresholds, event.observations, Enforce::min_reclaim).empty())
    measure_pods(*std::move(selection), now);
}

void Synchronizer::on(const PodDisplaced& event, Instant) {
  in_flight_.add({.pod = event.pod, .cause = event.displacement, .grace_period = event.grace_period, .message = {}});
}

void Synchronizer::on(const CleanupEnded& event, Instant) { in_flight_.end(event); }

void Synchronizer::on(const PodReturned& event, Instant) { in_flight_.returned(event.uid); }

void Synchronizer::on(const PolicyChanged& event, Instant now) {
  policy_ = event.policy;
  rate_limit_.cap(event.evictions_within_a_minute, now);
  if (containerfs_derived_) policy_.thresholds = with_derived_containerfs(std::move(policy_.thresholds), layout_);
  pressure_.retain(policy_.thresholds);
  waiting_.clear();
}

void Synchronizer::on(const LayoutDetected& event, Instant) {
  if (containerfs_derived_ && event.layout != layout_) {
    policy_.thresholds = with_derived_containerfs(std::move(policy_.thresholds), event.layout);
    pressure_.retain(policy_.thresholds);
    waiting_.clear();
  }
  layout_ = event.layout;
}

/// After the first pass, which still works with what was configured (kubelet-spec section 2).
void Synchronizer::derive_containerfs() {
  if (containerfs_derived_) return;
  policy_.thresholds = with_derived_containerfs(std::move(policy_.thresholds), layout_);
  containerfs_derived_ = true;
}

void Synchronizer::report_pressure(const PressureTracker::Pass& pass, const Observations& observations, Instant now) {
  for (const auto& threshold : pass.crossed)
    if (const auto& observation = observations[threshold.signal])
      actions_.push_back(ReportCrossing{{threshold, *observation}});
  if (pass.conditions_changed) actions_.push_back(ReportConditions{pressure_.conditions()});
  ask_to_wake(now);
  arm(observations);
}

void Synchronizer::ask_to_wake(Instant now) {
  auto wake_at = pressure_.next_change(policy_.pressure_transition_period, now);
  if (limited_until_) wake_at = std::min(wake_at.value_or(*limited_until_), *limited_until_);
  if (wake_at_ != wake_at) actions_.push_back(WakeAt{wake_at});
  wake_at_ = wake_at;
}

/// A node that is short of what no pod could go for has another pass once there are other pods, or more is known of
/// them: nothing else may begin one for minutes.
void Synchronizer::look_at_new_pods(Instant now) {
  if (without_victim_ == nullptr || without_victim_ == pods_) return;
  without_victim_.reset();
  wake_at_ = now;
  actions_.push_back(WakeAt{wake_at_});
}

void Synchronizer::arm(const Observations& observations) {
  std::vector<Level> levels;
  for (const auto& threshold : policy_.thresholds) {
    const auto& observation = observations[threshold.signal];
    if (!observation) continue;
    const Level level{threshold.signal, threshold.value.of(observation->capacity), threshold.is_hard()};
    if (std::ranges::find(levels, level) == levels.end()) levels.push_back(level);
  }
  if (levels == armed_) return;
  armed_ = levels;
  actions_.push_back(ArmLevels{std::move(levels)});
}

void Synchronizer::check_limits(Selection selection, Instant now) {
  const bool any = policy_.local_storage_isolation && std::ranges::any_of(*selection.pods, [](const PodPtr& pod) {
                     return has_local_storage_limits(*pod);
                   });
  if (!any) return choose_threshold(std::move(selection), now);
  const auto pods = selection.pods;
  const auto request = wait(std::move(selection), Selection::Stage::limits);
  actions_.push_back(ReadPodUsage{.request = request, .measure = Measure::LocalStorageLimits, .pods = pods});
}

void Synchronizer::evict_violators(const Selection& selection, std::span<const std::optional<PodUsage>> usage,
                                   Instant now) {
  for (std::size_t i = 0; i < selection.pods->size() && i < usage.size(); ++i) {
    const auto& pod = (*selection.pods)[i];
    if (!usage[i] || !in_flight_.may_choose(*pod)) continue;
    if (auto violation = first_violation(*pod, *usage[i], layout_))
      evict({.pod = pod, .cause = violation->limit, .message = {std::move(violation->message), {}}}, now);
  }
}

void Synchronizer::choose_threshold(Selection selection, Instant now) {
  selection.chosen = first_short(selection);
  if (selection.chosen) reclaim_node(std::move(selection), now);
}

/// The first acting threshold that what is in flight does not already satisfy. While one disk pass waits, no other is
/// begun: but memory and process ids do not wait for a disk.
std::optional<Acted> Synchronizer::first_short(const Selection& selection) const {
  for (const auto& acting : selection.acting) {
    const auto& observation = selection.observations[acting.threshold.signal];
    if (!observation) continue;
    if (is_disk(acting.threshold.signal) && waits_for_disk()) continue;
    if (!in_flight_.leaves_short(acting, *observation, layout_)) continue;
    return Acted{acting.threshold, *observation};
  }
  return std::nullopt;
}

bool Synchronizer::waits_for_disk() const {
  return std::ranges::any_of(waiting_, [](const Selection& selection) { return selection.chosen.has_value(); });
}

void Synchronizer::reclaim_node(Selection selection, Instant now) {
  const auto threshold = selection.chosen->threshold;
  const auto [containers, images] = reclaimable(threshold.signal, layout_);
  if (!containers && !images) return measure_pods(std::move(selection), now);
  const auto request = wait(std::move(selection), Selection::Stage::reclaim);
  actions_.push_back(ReclaimNode{request, threshold, containers, images});
}

/// Says so if as many pods have gone as may.
bool Synchronizer::is_limited(const Acted& acted, Instant now) {
  limited_until_ = rate_limit_.closed_until(now);
  if (!limited_until_) return false;
  actions_.push_back(RateLimited{acted, *limited_until_, rate_limit_.is_capped(now)});
  ask_to_wake(now);
  return true;
}

void Synchronizer::measure_pods(Selection selection, Instant now) {
  if (is_limited(*selection.chosen, now)) return;
  selection.pods = pods_;
  if (selection.pods->empty()) {
    without_victim_ = pods_;
    return;
  }
  const auto threshold = selection.chosen->threshold;
  ReadPodUsage action{.measure = measure_for(threshold.signal), .pods = selection.pods};
  action.standings.reserve(action.pods->size());
  for (const auto& pod : *action.pods) action.standings.push_back(order().standing(*pod, threshold));
  action.request = wait(std::move(selection), Selection::Stage::measure);
  actions_.push_back(std::move(action));
}

/// Whether what the pass began with is still so now that the pods were measured. Other passes may have evicted while a
/// disk was walked, which counts. Memory is answered before another pass can begin; what its victims have given back
/// since the node was read would count twice.
bool Synchronizer::still_acts(const Selection& selection, const std::optional<Observations>& fresh, Instant now) {
  const auto& [threshold, before] = *selection.chosen;
  const auto observation = fresh ? (*fresh)[threshold.signal] : before;
  if (!observation) return false;  // the next pass decides
  if (fresh && !is_met(threshold, *fresh, Enforce::min_reclaim)) {
    actions_.push_back(Recovered{{threshold, *observation}});
    return false;
  }
  if (!is_disk(threshold.signal)) return true;
  const ActingThreshold acting{.threshold = threshold, .unresolved = true};  // it has acted already
  if (!in_flight_.leaves_short(acting, *observation, layout_)) return false;
  return !is_limited(*selection.chosen, now);
}

void Synchronizer::evict_first(const Selection& selection, const PodsMeasured& measured_pods, Instant now) {
  const auto& [threshold, observation] = *selection.chosen;
  const auto& usage = measured_pods.usage;
  auto ranking = order().ranking(threshold, *selection.pods, usage, now);
  if (selection.pods != pods_) leave_out_gone(ranking, *pods_);
  // A disk that does not answer for them must not make them the first to go.
  leave_out(ranking, *selection.pods, measured_pods.out_of_reach);
  order().prefer_listed(ranking, *selection.chosen);
  const auto victim = std::ranges::find_if(ranking, may_go);
  if (victim == ranking.end()) {
    actions_.push_back(NoVictim{*selection.chosen, std::move(ranking)});
    without_victim_ = selection.pods;
    return look_at_new_pods(now);
  }
  if (waits_for_more(*victim, *selection.chosen)) return;
  back_off_.evicted(*victim, threshold.signal, now);
  const auto position = std::ranges::find(*selection.pods, victim->pod) - selection.pods->begin();
  const auto& measured = usage[static_cast<std::size_t>(position)];
  evict({.pod = victim->pod,
         .cause = threshold.signal,
         .grace_period = grace_period(threshold, *victim->pod),
         .message = eviction_message(threshold, observation, *victim->pod, measured),
         .acted = selection.chosen,
         .ranking = ranking,
         .expected_release = victim->usage},
        now);
}

/// Whether this one would go for next to nothing while what an earlier victim held of the disk is still to come back,
/// which takes the runtime and the disk seconds: less than a hundredth of what the threshold keeps free. The next pass
/// decides anew; nobody is chosen in its place, since whoever comes behind it is to outlive it.
bool Synchronizer::waits_for_more(const RankedPod& victim, const Acted& acted) const {
  constexpr std::int64_t next_to_nothing = 100;  // the part of the amount
  const auto& [threshold, observation] = acted;
  if (!is_disk(threshold.signal) || !victim.has_stats) return false;
  const auto amount = required(threshold, observation.capacity, Enforce::min_reclaim);
  return victim.usage < amount / next_to_nothing && in_flight_.helps(threshold, layout_);
}

std::vector<PlacedPod> Synchronizer::ranking(Signal signal, const PodList& pods,
                                             std::span<const std::optional<PodUsage>> usage, Instant now) const {
  std::vector<PlacedPod> placed;
  for (auto& ranked : order().ranking(threshold_of(signal), pods, usage, now)) {
    const bool backing_off = back_off_.holds(ranked, signal, now);
    const bool stuck = in_flight_.is_stuck(*ranked.pod);
    placed.push_back({std::move(ranked), backing_off, stuck});
  }
  return placed;
}

Standing Synchronizer::standing(Signal signal, const Pod& pod) const {
  return order().place(pod, threshold_of(signal));
}

/// The first in force, which is the hard one if there is one; a hard one if there is none.
Threshold Synchronizer::threshold_of(Signal signal) const {
  const auto found = std::ranges::find(policy_.thresholds, signal, &Threshold::signal);
  return found == policy_.thresholds.end() ? Threshold{.signal = signal} : *found;
}

/// Hard: at once. Soft: the configured maximum, or the pod's own where that is shorter (kubelet 1.32); with a negative
/// maximum the pod's own.
Duration Synchronizer::grace_period(const Threshold& threshold, const Pod& pod) const {
  constexpr std::chrono::seconds kubernetes_default{30};
  if (threshold.is_hard()) return Duration::zero();
  const auto own = own_grace_period(pod);
  if (!policy_.max_pod_grace_period) return own.value_or(kubernetes_default);
  return std::min(*policy_.max_pod_grace_period, own.value_or(*policy_.max_pod_grace_period));
}

RequestId Synchronizer::wait(Selection selection, Selection::Stage stage) {
  selection.request = ++last_request_;
  selection.stage = stage;
  waiting_.push_back(std::move(selection));
  return last_request_;
}

std::optional<Synchronizer::Selection> Synchronizer::take(RequestId request, Selection::Stage stage) {
  const auto found = std::ranges::find(waiting_, request, &Selection::request);
  if (found == waiting_.end() || found->stage != stage) return std::nullopt;
  auto selection = std::move(*found);
  waiting_.erase(found);
  return selection;
}

void Synchronizer::evict(Evict evict, Instant now) {
  in_flight_.add(evict);
  if (evict.acted) rate_limit_.count(now);
  actions_.push_back(std::move(evict));
}

}  // namespace evictd::core
