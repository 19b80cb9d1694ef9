#include "state/restored_state.hpp"

#include <state.pb.h>

#include <algorithm>
#include <memory>
#include <string>

#include "core/duration.hpp"
#include "core/in_flight.hpp"
#include "core/pod.hpp"
#include "core/quantity.hpp"
#include "core/threshold.hpp"
#include "core/wake.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::state {
namespace {

using KeptFlight = v1::Synchronizer::InFlight;

std::optional<core::Threshold> restored(const v1::Threshold& kept) {
  const auto signal = core::parse_signal(kept.signal());
  if (!signal) return std::nullopt;
  core::Threshold threshold{.signal = *signal, .grace = core::Duration{kept.grace_ns()}};
  if (kept.has_fraction()) {
    threshold.value = {core::Percentage{kept.fraction()}};
    return threshold;
  }
  const auto quantity = core::Quantity::parse(kept.quantity());
  if (!quantity) return std::nullopt;
  threshold.value = {*quantity};
  return threshold;
}

core::InFlight::State restored(KeptFlight::State kept) {
  if (kept == KeptFlight::RELEASED) return core::InFlight::State::released;
  return kept == KeptFlight::STUCK ? core::InFlight::State::stuck : core::InFlight::State::releasing;
}

std::optional<core::InFlight::Entry> restored(const KeptFlight& kept) {
  const auto cause = core::parse_cause(kept.cause());
  if (!cause) return std::nullopt;
  return core::InFlight::Entry{.uid = kept.uid(),
                               .cause = *cause,
                               .grace_period = core::Duration{kept.grace_period_ns()},
                               .remaining = kept.remaining(),
                               .known = kept.known(),
                               .state = restored(kept.state())};
}

core::BackOff::State restored_back_off(const auto& kept) {
  core::BackOff::State state;
  for (const auto& [controller, message] : kept)
    for (const auto& [by, name] : rank_by_names)
      if (name == message.resource())
        state[controller] = {.until = state::restored(message.until_ns()), .by = by, .usage = message.usage()};
  return state;
}

core::ThresholdOverlay::BySignal restored_entries(const auto& kept) {
  core::ThresholdOverlay::BySignal entries;
  for (const auto& entry : kept)
    entries.emplace(entry.signal(), entry.has_value() ? std::optional(entry.value()) : std::nullopt);
  return entries;
}

core::Turn restored_turn(const v1::Eviction& kept) {
  core::Turn turn{{.time = state::restored(kept.woken_ns()), .reasons = {}}};
  for (const auto& reason : kept.reasons())
    turn.wake.reasons.push_back({core::parse_wake_source(reason.source()).value_or(core::WakeSource::Other),
                                 reason.detail(), state::restored(reason.time_ns())});
  if (turn.wake.reasons.empty())
    turn.wake.reasons.push_back({core::WakeSource::Restart, "", turn.wake.time});  // it has one always
  for (const auto& [name, time] : kept.stages_ns())
    if (const auto stage = core::parse_stage(name)) turn.stages.set(*stage, core::Duration{time});
  return turn;
}

std::optional<core::Acted> restored_acted(const v1::Eviction& kept) {
  if (!kept.has_acted()) return std::nullopt;
  const auto threshold = restored(kept.acted().threshold());
  if (!threshold) return std::nullopt;
  core::Observation observation{.available = kept.acted().available(), .capacity = kept.acted().capacity()};
  if (kept.acted().time_ns() != 0) observation.time = state::restored(kept.acted().time_ns());
  return core::Acted{*threshold, observation};
}

std::optional<core::DiskRelease> restored_disk_release(const v1::Eviction& kept) {
  const auto signal = core::parse_signal(kept.disk_release().signal());
  if (!signal) return std::nullopt;
  return core::DiskRelease{*signal, kept.disk_release().amount(), kept.disk_release().available()};
}

evict::GivenTime restored_given_time(std::int32_t kept) {
  using enum evict::GivenTime;
  return kept == static_cast<std::int32_t>(now) ? now : kept == static_cast<std::int32_t>(over) ? over : none;
}

pods::RuntimePodPtr restored_pod(const v1::Eviction& kept, core::PodPtr pod) {
  auto runtime = std::make_shared<pods::RuntimePod>();
  runtime->pod = std::move(pod);
  runtime->sandbox_id = kept.sandbox_id();
  runtime->cgroup = kept.cgroup();
  for (const auto& container : kept.containers())
    runtime->containers.push_back(
        {.id = container.id(),
         .name = container.name().empty() ? container.id() : container.name(),
         .state = container.exited() ? pods::ContainerState::Exited : pods::ContainerState::Unknown,
         .cgroup = container.cgroup()});
  return runtime;
}

}  // namespace

core::Synchronizer::State restored(const v1::Synchronizer& kept) {
  core::Synchronizer::State state;
  for (const auto& met : kept.met())
    if (const auto threshold = restored(met.threshold()))
      state.pressure.met.push_back({*threshold, restored(met.since_ns())});
  for (const auto& row : core::node_condition_rows)
    if (const auto found = kept.conditions_last_observed_ns().find(std::string(row.name));
        found != kept.conditions_last_observed_ns().end())
      state.pressure.last_observed.emplace_back(row.condition, restored(found->second));
  std::ranges::sort(state.pressure.last_observed);  // the state machine's order
  for (const auto& acting : kept.acting())
    if (const auto threshold = restored(acting)) state.pressure.acting.push_back(*threshold);
  for (const auto& message : kept.in_flight())
    if (auto entry = restored(message)) state.in_flight.push_back(*std::move(entry));
  state.back_off = restored_back_off(kept.back_off());
  if (kept.has_cap()) state.rate_limit.cap = {.left = kept.cap().left(), .until = restored(kept.cap().until_ns())};
  for (const auto time : kept.recent_evictions_ns()) state.rate_limit.recent.push_back(restored(time));
  state.layout = {.dedicated_imagefs = kept.dedicated_imagefs(), .split = kept.split_imagefs()};
  state.layout_known = kept.layout_known();
  state.containerfs_derived = kept.containerfs_derived();
  return state;
}

EventMark restored(const v1::EventMark& kept) {
  return {.generation = kept.generation(), .last = kept.last(), .reserved = kept.reserved(), .end = kept.end()};
}

core::ThresholdOverlay restored(const v1::Overlay& kept) {
  return {.hard = restored_entries(kept.hard()),
          .soft = restored_entries(kept.soft()),
          .soft_grace_period = restored_entries(kept.soft_grace_period()),
          .minimum_reclaim = restored_entries(kept.minimum_reclaim())};
}

std::optional<evict::EvictionRecord> restored(const v1::Eviction& kept) {
  const auto cause = core::parse_cause(kept.cause());
  if (!cause || kept.pod_uid().empty() || kept.pod_uid().size() > longest_id) return std::nullopt;
  auto pod = std::make_shared<core::Pod>();
  pod->name_space = kept.pod_namespace();
  pod->name = kept.pod_name();
  pod->uid = kept.pod_uid();
  pod->annotations.insert(kept.pod_annotations().begin(), kept.pod_annotations().end());
  return evict::EvictionRecord{
      {.pod = pod,
       .cause = *cause,
       .grace_period = core::Duration{kept.grace_period_ns()},
       .message = {kept.message(), {kept.message_annotations().begin(), kept.message_annotations().end()}},
       .acted = restored_acted(kept),
       .expected_release = kept.expected_release(),
       .disk_release = restored_disk_release(kept)},
      {.begun = restored(kept.begun_ns()),
       .killed = kept.killed(),
       .released = kept.released(),
       .gone = kept.gone(),
       .held = kept.held_bytes(),
       .given_time = restored_given_time(kept.given_time())},
      kept.id(),
      restored_turn(kept),
      restored_pod(kept, pod),
  };
}

}  // namespace evictd::state
