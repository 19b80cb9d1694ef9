#include "core/synchronizer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "core/eviction_order.hpp"

namespace evictd::core {
namespace {

/// What was short before an absence longer than this may have been over meanwhile.
constexpr auto longest_absence = std::chrono::minutes(5);

/// A threshold that is met is noted with its node condition in every pass.
void forget_unseen(PressureTracker::State& state, Instant now) {
  const auto is_unseen = [&](const Threshold& threshold) {
    const auto seen = std::ranges::find(state.last_observed, condition_of(threshold.signal),
                                        &PressureTracker::LastObserved::value_type::first);
    return seen == state.last_observed.end() || now - seen->second > longest_absence;
  };
  std::erase_if(state.met, [&](const PressureTracker::Met& met) { return is_unseen(met.threshold); });
  std::erase_if(state.acting, is_unseen);
}

}  // namespace

Synchronizer::Synchronizer(EvictionPolicy policy, SynchronizerOptions options)
    : context_{.policy = std::move(policy),
               .in_flight = InFlight{options.in_flight_reclaim, options.acts},
               .back_off = BackOff{options.back_off},
               .rate_limit = RateLimit{options.max_evictions_per_minute},
               .evictions_in_first_minute = options.evictions_in_first_minute} {}

Synchronizer::State Synchronizer::state() const {
  auto pressure = context_.pressure.state();
  if (before_reports_) pressure.last_observed = before_reports_->last_observed;
  return {.pressure = std::move(pressure),
          .in_flight = context_.in_flight.to_save(),
          .back_off = (before_reports_ ? before_reports_->back_off : context_.back_off).state(),
          .rate_limit = (before_reports_ ? before_reports_->rate_limit : context_.rate_limit).state(),
          .layout = context_.layout,
          .layout_known = context_.layout_known,
          .containerfs_derived = context_.containerfs_derived};
}

void Synchronizer::restore(State state, Instant now) {
  context_.layout = state.layout;
  context_.layout_known = state.layout_known;
  if (state.containerfs_derived) context_.derive_containerfs();
  forget_unseen(state.pressure, now);
  context_.pressure.restore(std::move(state.pressure));
  context_.pressure.retain(context_.policy.thresholds);
  context_.in_flight.restore(std::move(state.in_flight));
  context_.back_off.restore(std::move(state.back_off));
  context_.rate_limit.restore(std::move(state.rate_limit));
}

std::optional<WakeAt> Synchronizer::tell(const Event& event, Instant now) {
  context_.begin_first_minute(now);
  std::visit([&](const auto& known) { on(known, now); }, event);
  return context_.wake_for_new_pods(now);
}

Pass Synchronizer::begin(const Observations& observations, std::vector<Releasing> releasing) {
  return {context_, observations, std::move(releasing)};
}

void Synchronizer::on(const PodsChanged& event, Instant now) {
  context_.pods = event.pods;
  context_.unlisted = event.unlisted;
  context_.in_flight.retain(*event.pods, now);
}

void Synchronizer::on(const PodDisplaced& event, Instant) {
  context_.in_flight.displaced(
      {.pod = event.pod, .cause = event.displacement, .grace_period = event.grace_period, .message = {}});
}

void Synchronizer::on(const PodHeld& event, Instant) { context_.in_flight.hold(event); }

void Synchronizer::on(const CleanupEnded& event, Instant) { context_.in_flight.end(event); }

void Synchronizer::on(const PodReturned& event, Instant) { context_.in_flight.returned(event.uid); }

void Synchronizer::on(const ActingChanged& event, Instant) {
  context_.in_flight.change(event);
  if (!event.acts) {
    before_reports_ = {.back_off = context_.back_off,
                       .rate_limit = context_.rate_limit,
                       .last_observed = context_.pressure.state().last_observed};
  } else if (auto before = std::exchange(before_reports_, std::nullopt)) {
    context_.back_off = std::move(before->back_off);
    context_.rate_limit = std::move(before->rate_limit);
    context_.pressure.observe_as_of(std::move(before->last_observed));
  }
}

void Synchronizer::on(const PolicyChanged& event, Instant now) {
  context_.policy = event.policy;
  if (const auto most = event.evictions_within_a_minute) {
    context_.rate_limit.cap(*most, now);
    if (before_reports_) before_reports_->rate_limit.cap(*most, now);
  }
  thresholds_changed();
}

void Synchronizer::on(const LayoutDetected& event, Instant) {
  context_.layout_known = true;
  if (event.layout == context_.layout) return;
  context_.layout = event.layout;
  if (context_.containerfs_derived) thresholds_changed();
}

/// What belongs to thresholds that are not in force any more is forgotten, and no pass goes on that began with them.
void Synchronizer::thresholds_changed() {
  auto& thresholds = context_.policy.thresholds;
  if (context_.containerfs_derived) thresholds = with_derived_containerfs(std::move(thresholds), context_.layout);
  context_.pressure.retain(thresholds);
  context_.passes.drop_all();
}

std::vector<PlacedPod> Synchronizer::ranking(Signal signal, const PodList& pods,
                                             std::span<const std::optional<PodUsage>> usage, Instant now) const {
  std::vector<PlacedPod> placed;
  for (auto& ranked : context_.order().ranking(threshold_of(signal), pods, usage, now)) {
    const bool backing_off = context_.back_off.holds(ranked, signal, now);
    const bool stuck = context_.in_flight.is_stuck(*ranked.pod);
    placed.push_back({std::move(ranked), backing_off, stuck});
  }
  return placed;
}

Eligibility Synchronizer::eligibility(Signal signal, const Pod& pod) const {
  return context_.order().place(pod, threshold_of(signal));
}

/// The first in force, which is the hard one if there is one; a hard one if there is none.
Threshold Synchronizer::threshold_of(Signal signal) const {
  const auto found = std::ranges::find(thresholds(), signal, &Threshold::signal);
  return found == thresholds().end() ? Threshold{.signal = signal} : *found;
}

}  // namespace evictd::core
