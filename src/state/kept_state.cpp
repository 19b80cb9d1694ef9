#include "state/kept_state.hpp"

#include <state.pb.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/duration.hpp"
#include "core/in_flight.hpp"
#include "core/pod.hpp"
#include "core/quantity.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"
#include "core/wake.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::state {
namespace {

using KeptFlight = v1::Synchronizer::InFlight;

v1::Threshold keep(const core::Threshold& threshold) {
  v1::Threshold kept;
  kept.set_signal(std::string(core::name(threshold.signal)));
  if (const auto* quantity = std::get_if<core::Quantity>(&threshold.value.value))
    kept.set_quantity(quantity->to_string());
  else
    kept.set_fraction(std::get<core::Percentage>(threshold.value.value).fraction);
  kept.set_grace_ns(threshold.grace.count());
  return kept;
}

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

KeptFlight::State keep(core::InFlight::State state) {
  switch (state) {
    case core::InFlight::State::releasing: break;
    case core::InFlight::State::released: return KeptFlight::RELEASED;
    case core::InFlight::State::stuck: return KeptFlight::STUCK;
  }
  return KeptFlight::RELEASING;
}

core::InFlight::State restored(KeptFlight::State kept) {
  if (kept == KeptFlight::RELEASED) return core::InFlight::State::released;
  return kept == KeptFlight::STUCK ? core::InFlight::State::stuck : core::InFlight::State::releasing;
}

KeptFlight keep(const core::InFlight::Entry& entry) {
  KeptFlight kept;
  kept.set_uid(entry.uid);
  kept.set_cause(std::string(core::name(entry.cause)));
  kept.set_grace_period_ns(entry.grace_period.count());
  kept.set_remaining(entry.remaining);
  kept.set_known(entry.known);
  kept.set_state(keep(entry.state));
  return kept;
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

using RankByName = std::pair<core::RankBy, std::string_view>;
constexpr std::array<RankByName, 4> rank_by_names{{{core::RankBy::Memory, "memory"},
                                                   {core::RankBy::EphemeralStorage, "ephemeral-storage"},
                                                   {core::RankBy::Inodes, "inodes"},
                                                   {core::RankBy::Processes, "pids"}}};

void keep(const core::BackOff::State& back_off, auto& kept) {
  for (const auto& [controller, eviction] : back_off) {
    auto& message = kept[controller];
    message.set_until_ns(state::keep(eviction.until));
    message.set_resource(std::string(std::ranges::find(rank_by_names, eviction.by, &RankByName::first)->second));
    message.set_usage(eviction.usage);
  }
}

core::BackOff::State restored_back_off(const auto& kept) {
  core::BackOff::State state;
  for (const auto& [controller, message] : kept)
    for (const auto& [by, name] : rank_by_names)
      if (name == message.resource())
        state[controller] = {.until = state::restored(message.until_ns()), .by = by, .usage = message.usage()};
  return state;
}

void keep_entries(const core::ThresholdOverlay::BySignal& entries, auto& kept) {
  for (const auto& [signal, value] : entries) {
    auto& entry = *kept.Add();
    entry.set_signal(signal);
    if (value) entry.set_value(*value);
  }
}

core::ThresholdOverlay::BySignal restored_entries(const auto& kept) {
  core::ThresholdOverlay::BySignal entries;
  for (const auto& entry : kept)
    entries.emplace(entry.signal(), entry.has_value() ? std::optional(entry.value()) : std::nullopt);
  return entries;
}

/// Up to `most` bytes of the text, and no part of a character at its end.
std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  const auto continues = [&] { return (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80; };
  while (most > 0 && continues()) --most;
  return std::string(text.substr(0, most));
}

/// "" where it is longer than any that there really is.
std::string identity(const std::string& id, std::size_t longest) { return id.size() <= longest ? id : std::string(); }

// Bounds of what is kept of an eviction. Names are those of Kubernetes, which checks them; the rest is generous.
constexpr std::size_t longest_name = 253;
constexpr std::size_t longest_id = 256;
constexpr std::size_t longest_cgroup = 512;
constexpr std::size_t longest_reason = 256;
constexpr std::size_t longest_annotation = 1024;
constexpr std::size_t most_reasons = 8;
constexpr std::size_t most_annotations = 8;

constexpr std::size_t longest_message(Detail detail) {
  return detail == Detail::Full ? 4096 : detail == Detail::Brief ? 1024 : 256;
}
/// A pod with more than these is ended by its sandbox's end.
constexpr std::size_t most_containers(Detail detail) {
  return detail == Detail::Full ? 32 : detail == Detail::Brief ? 8 : 2;
}

/// What is_critical() and eviction_report() look at.
constexpr std::array<std::string_view, 3> needed_annotations{"kubernetes.io/config.source", "kubernetes.io/config.hash",
                                                             "kubernetes.io/config.mirror"};

void keep(const core::Turn& turn, Detail detail, v1::Eviction& kept) {
  kept.set_woken_ns(state::keep(turn.wake.time));
  if (detail == Detail::Least) return;
  for (const auto& reason : turn.wake.reasons | std::views::take(most_reasons)) {
    auto& message = *kept.add_reasons();
    message.set_source(std::string(core::name(reason.source)));
    if (detail == Detail::Full) message.set_detail(shortened(reason.detail, longest_reason));
    message.set_time_ns(state::keep(reason.time));
  }
  for (const auto stage : core::stages_by_name())
    if (const auto time = turn.stages[stage])
      (*kept.mutable_stages_ns())[std::string(core::name(stage))] = time->count();
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

void keep(const core::Acted& acted, v1::Eviction::Acted& kept) {
  *kept.mutable_threshold() = keep(acted.threshold);
  kept.set_available(acted.observation.available);
  kept.set_capacity(acted.observation.capacity);
  kept.set_time_ns(acted.observation.time ? state::keep(*acted.observation.time) : 0);
}

std::optional<core::Acted> restored_acted(const v1::Eviction& kept) {
  if (!kept.has_acted()) return std::nullopt;
  const auto threshold = restored(kept.acted().threshold());
  if (!threshold) return std::nullopt;
  core::Observation observation{.available = kept.acted().available(), .capacity = kept.acted().capacity()};
  if (kept.acted().time_ns() != 0) observation.time = state::restored(kept.acted().time_ns());
  return core::Acted{*threshold, observation};
}

void keep(const pods::RuntimePod& pod, Detail detail, v1::Eviction& kept) {
  kept.set_sandbox_id(identity(pod.sandbox_id, longest_id));
  kept.set_cgroup(identity(pod.cgroup, longest_cgroup));
  for (const auto& container : pod.containers | std::views::take(most_containers(detail))) {
    auto& message = *kept.add_containers();
    message.set_id(identity(container.id, longest_id));
    if (detail == Detail::Full) message.set_name(shortened(container.name, longest_name));
    message.set_cgroup(identity(container.cgroup, longest_cgroup));
    message.set_exited(container.state == pods::ContainerState::Exited);
  }
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

v1::Synchronizer keep(const core::Synchronizer::State& from) {
  v1::Synchronizer kept;
  for (const auto& [threshold, since] : from.pressure.met) {
    auto& met = *kept.add_met();
    *met.mutable_threshold() = keep(threshold);
    met.set_since_ns(keep(since));
  }
  for (const auto& [condition, time] : from.pressure.last_observed)
    (*kept.mutable_conditions_last_observed_ns())[std::string(core::name(condition))] = keep(time);
  for (const auto& threshold : from.pressure.acting) *kept.add_acting() = keep(threshold);
  for (const auto& entry : from.in_flight) *kept.add_in_flight() = keep(entry);
  keep(from.back_off, *kept.mutable_back_off());
  if (const auto& cap = from.rate_limit.cap) {
    kept.mutable_cap()->set_left(cap->left);
    kept.mutable_cap()->set_until_ns(keep(cap->until));
  }
  for (const auto time : from.rate_limit.recent) kept.add_recent_evictions_ns(keep(time));
  kept.set_dedicated_imagefs(from.layout.dedicated_imagefs);
  kept.set_split_imagefs(from.layout.split);
  kept.set_containerfs_derived(from.containerfs_derived);
  return kept;
}

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
  state.containerfs_derived = kept.containerfs_derived();
  return state;
}

v1::EventMark keep(const EventMark& mark) {
  v1::EventMark kept;
  kept.set_generation(mark.generation);
  kept.set_last(mark.last);
  kept.set_reserved(mark.reserved);
  kept.set_end(mark.end);
  return kept;
}

EventMark restored(const v1::EventMark& kept) {
  return {.generation = kept.generation(), .last = kept.last(), .reserved = kept.reserved(), .end = kept.end()};
}

v1::Overlay keep(const core::ThresholdOverlay& overlay) {
  v1::Overlay kept;
  keep_entries(overlay.hard, *kept.mutable_hard());
  keep_entries(overlay.soft, *kept.mutable_soft());
  keep_entries(overlay.soft_grace_period, *kept.mutable_soft_grace_period());
  keep_entries(overlay.minimum_reclaim, *kept.mutable_minimum_reclaim());
  return kept;
}

core::ThresholdOverlay restored(const v1::Overlay& kept) {
  return {.hard = restored_entries(kept.hard()),
          .soft = restored_entries(kept.soft()),
          .soft_grace_period = restored_entries(kept.soft_grace_period()),
          .minimum_reclaim = restored_entries(kept.minimum_reclaim())};
}

v1::Eviction keep(const evict::EvictionRecord& record, Detail detail) {
  v1::Eviction kept;
  kept.set_id(record.id);
  kept.set_pod_namespace(shortened(record.pod->name_space, longest_name));
  kept.set_pod_name(shortened(record.pod->name, longest_name));
  kept.set_pod_uid(identity(record.pod->uid, longest_id));
  for (const auto key : needed_annotations)
    if (const auto found = record.pod->annotations.find(key); found != record.pod->annotations.end())
      (*kept.mutable_pod_annotations())[found->first] = shortened(found->second, longest_name);
  kept.set_cause(std::string(core::name(record.cause)));
  keep(record.turn, detail, kept);
  if (record.acted) keep(*record.acted, *kept.mutable_acted());
  kept.set_expected_release(record.expected_release);
  kept.set_grace_period_ns(record.grace_period.count());
  kept.set_begun_ns(keep(record.begun));
  kept.set_killed(record.killed);
  kept.set_released(record.released);
  kept.set_held_bytes(record.held);
  kept.set_message(shortened(record.message.text, longest_message(detail)));
  if (detail == Detail::Full)
    for (const auto& [key, value] : record.message.annotations | std::views::take(most_annotations))
      (*kept.mutable_message_annotations())[shortened(key, longest_name)] = shortened(value, longest_annotation);
  if (record.runtime != nullptr) keep(*record.runtime, detail, kept);
  return kept;
}

std::optional<evict::EvictionRecord> restored(const v1::Eviction& kept) {
  const auto cause = core::parse_cause(kept.cause());
  if (!cause || identity(kept.pod_uid(), longest_id).empty()) return std::nullopt;
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
       .expected_release = kept.expected_release()},
      {.begun = restored(kept.begun_ns()),
       .killed = kept.killed(),
       .released = kept.released(),
       .held = kept.held_bytes()},
      kept.id(),
      restored_turn(kept),
      restored_pod(kept, pod),
  };
}

}  // namespace evictd::state
