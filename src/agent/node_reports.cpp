#include "agent/node_reports.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "agent/describe.hpp"

namespace evictd::agent {
namespace {

std::string service_status(const NodeReports::Passed& passed) {
  std::string conditions;
  for (const auto condition : passed.conditions) conditions += fmt::format(" {}", core::name(condition));
  const auto& memory = passed.observations[core::Signal::MemoryAvailable];
  return fmt::format("{}; {} of memory available; {} evictions, {} under way",
                     conditions.empty() ? "no pressure" : conditions.substr(1),
                     human_bytes(memory ? memory->available : 0), passed.evictions, passed.under_way);
}

}  // namespace

void NodeReports::observed(const node::NodeMemoryReading& reading, core::Instant now) {
  last_ = reading.observations;
  memory_.observed(reading, now);
}

void NodeReports::conditions_changed(const core::NodeConditions& conditions, core::Instant now) {
  parts_.conditions.change(conditions, now);
  tell_cluster();
}

void NodeReports::tell_cluster() const {
  if (parts_.cluster == nullptr) return;
  parts_.cluster->node_conditions(conditions());
}

void NodeReports::only_watch(bool only_watch) {
  if (std::exchange(only_watch_, only_watch) != only_watch && ready_) tell_cluster();
}

void NodeReports::threshold_met(const core::Threshold& threshold) const {
  if (parts_.cluster != nullptr) parts_.cluster->threshold_met(core::resource_of(threshold.signal));
}

void NodeReports::pass_ended(const Passed& passed, core::Instant now) {
  rates_.observe(passed.observations, now);
  parts_.service.status(service_status(passed));
  if (!std::exchange(ready_, true)) {
    parts_.service.ready();
    // What an earlier evictd reported of the node may not be true any more.
    tell_cluster();
  }
  parts_.state.save();
  for (auto* listener : listeners_) listener->passed(passed.observations);
}

core::Observations NodeReports::look(core::Instant now) {
  const auto reading = parts_.observer.read(now);
  if (!reading) return last_;
  rates_.observe(reading->observations, now);
  return reading->observations;
}

std::optional<std::int64_t> NodeReports::capacity(core::Signal signal) const {
  const auto& observation = last_[signal];
  return observation ? std::optional(observation->capacity) : std::nullopt;
}

}  // namespace evictd::agent
