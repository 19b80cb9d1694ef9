#include "agent/describe_eviction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "agent/describe.hpp"
#include "core/displacement.hpp"
#include "core/pod.hpp"
#include "core/signal.hpp"

namespace evictd::agent {
namespace {

/// How old the numbers were by which the pod was chosen. (kubelet 1.36, eviction_manager.go: EvictionStatsAge)
std::optional<core::Duration> observation_age(const core::Eviction& eviction, const core::Turn& turn) {
  const auto decided = turn.stages[core::Stage::Decided];
  if (!eviction.acted || !eviction.acted->observation.time || !decided) return std::nullopt;
  return std::max(turn.wake.time + *decided - *eviction.acted->observation.time, core::Duration::zero());
}

/// What is done to the pod, for people.
std::string_view verb(const core::EvictionCause& cause) {
  const auto* displacement = std::get_if<core::Displacement>(&cause);
  if (displacement == nullptr) return "evicting";
  return *displacement == core::Displacement::Preemption ? "preempting" : "terminating";
}

}  // namespace

v1::Event new_event(v1::Event::Kind kind, const core::Turn& turn) {
  v1::Event event;
  event.set_kind(kind);
  auto& wake = *event.mutable_wake();
  wake.set_source(std::string(core::name(turn.wake.source())));
  for (const auto& reason : turn.wake.reasons)
    wake.add_reasons(reason.detail.empty() ? std::string(core::name(reason.source))
                                           : fmt::format("{}: {}", core::name(reason.source), reason.detail));
  wake.set_monotonic_ns(turn.wake.time.time_since_epoch().count());
  for (const auto stage : core::stages_by_name())
    if (const auto time = turn.stages[stage])
      (*event.mutable_stages())[std::string(core::name(stage))] =
          std::chrono::duration_cast<std::chrono::microseconds>(*time).count();
  return event;
}

v1::Event new_event(v1::Event::Kind kind, const evict::EvictionRecord& record) {
  auto event = new_event(kind, record.turn);
  event.set_eviction_id(record.id);
  *event.mutable_pod() = describe_pod(*record.pod);
  event.set_signal(std::string(core::name(record.cause)));
  return event;
}

v1::Event describe_crossing(const core::Acted& acted, const core::Turn& turn) {
  auto event = new_event(v1::Event::THRESHOLD_CROSSED, turn);
  const auto& [threshold, observation] = acted;
  event.set_signal(std::string(core::name(threshold.signal)));
  *event.mutable_threshold_crossed()->mutable_threshold() = describe_threshold(threshold, observation.capacity);
  *event.mutable_threshold_crossed()->mutable_observation() = describe_observation(observation);
  event.set_message(
      fmt::format("{}: {} available", core::to_string(threshold), amount(threshold.signal, observation.available)));
  return event;
}

v1::Event describe_intent(const evict::EvictionRecord& record, std::size_t candidates, bool dry_run) {
  auto event = new_event(v1::Event::EVICTION_INTENDED, record);
  auto& detail = *event.mutable_eviction_intended();
  if (record.acted) {
    *detail.mutable_threshold() = describe_threshold(record.acted->threshold, record.acted->observation.capacity);
    *detail.mutable_observation() = describe_observation(record.acted->observation);
  }
  if (const auto age = observation_age(record, record.turn)) *detail.mutable_observation_age() = to_duration(*age);
  detail.set_grace_period_seconds(std::chrono::ceil<std::chrono::seconds>(record.grace_period).count());
  detail.set_reason(std::string(core::reason(record.cause)));
  detail.set_candidates(static_cast<std::int32_t>(candidates));
  for (const auto& ranked : record.ranking) *detail.add_ranking() = describe_ranked(ranked);
  detail.mutable_annotations()->insert(record.message.annotations.begin(), record.message.annotations.end());
  detail.set_dry_run(dry_run);
  event.set_message(fmt::format("{}{} {}: {}", dry_run ? "(dry run) " : "", verb(record.cause), record.pod->key(),
                                record.message.text));
  return event;
}

}  // namespace evictd::agent
