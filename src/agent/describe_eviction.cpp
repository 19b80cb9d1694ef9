#include "agent/describe_eviction.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "agent/describe.hpp"
#include "core/pod.hpp"
#include "core/signal.hpp"

namespace evictd::agent {

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

}  // namespace evictd::agent
