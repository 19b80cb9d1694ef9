#include "simulate/simulated_holds.hpp"

#include <boost/json.hpp>
#include <optional>
#include <string>

#include "core/quantity.hpp"
#include "core/saturating.hpp"

namespace json = boost::json;

namespace evictd::simulate {
namespace {

const core::PodUsage* usage_of(const core::Pod& pod, const ScenarioStep& step) {
  const auto found = step.usage.find(pod.key());
  return found == step.usage.end() ? nullptr : &found->second;
}

/// Bytes of memory.
std::int64_t held_by(const core::Pod& pod, const ScenarioStep& step) {
  const auto* usage = usage_of(pod, step);
  return usage == nullptr ? 0 : usage->working_set.value_or(0);
}

}  // namespace

json::value SimulatedHolds::begin(const core::Eviction& eviction, const ScenarioStep& step) {
  const auto required = core::memory_required_at_once(eviction);
  const auto& time = settings_.time;
  if (!required || !time.is_there(eviction.acted->observation.available, *required, time.asks())) return nullptr;
  auto& held = held_.emplace_back(Held{.pod = eviction.pod,
                                       .signal = eviction.acted->threshold.signal,
                                       .required = *required,
                                       .since = step.time,
                                       .seen = step.time});
  if (!time.brakes()) return json::object{{"by", "freeze"}};
  if (!time.asks()) static_cast<void>(is_idle(held, step));
  const auto limit = core::saturating_add(held_by(*eviction.pod, step), settings_.headroom);
  return json::object{{"by", "brake"}, {"limit", core::Quantity::bytes(limit).to_string()}};
}

json::array SimulatedHolds::end(const ScenarioStep& step) {
  json::array ended;
  for (auto held = held_.begin(); held != held_.end();) {
    const auto how = why_over(*held, step);
    if (!how) {
      ++held;
      continue;
    }
    const auto after = core::to_string(step.time - held->since);
    ended.push_back(json::object{{"pod", held->pod->key()}, {"after", after}, {"how", *how}});
    held = held_.erase(held);
  }
  return ended;
}

std::optional<std::string> SimulatedHolds::why_over(Held& held, const ScenarioStep& step) const {
  const auto& time = settings_.time;
  const auto& observation = step.observed[held.signal];
  if (!observation) return "killed: memory cannot be read";
  if (observation->available < time.floor_of(held.required))
    return "killed: available fell to " + core::Quantity::bytes(observation->available).to_string();
  const auto* usage = usage_of(*held.pod, step);
  if (usage != nullptr && !usage->runs) return "ended by itself";
  const bool unanswered = time.asks() && !step.answered.contains(held.pod->key());
  if (time.is_over(held.since, step.time, unanswered)) return "killed: its time is over";
  if (!time.brakes() || time.waits_for_hooks(held.since, step.time, unanswered)) {
    held.idleness.reset();
    held.seen = step.time;
    return std::nullopt;
  }
  if (is_idle(held, step)) return "killed: " + core::Idleness::why();
  return std::nullopt;
}

bool SimulatedHolds::is_idle(Held& held, const ScenarioStep& step) const {
  if (!step.idle.contains(held.pod->key())) held.processor_time += step.time - held.seen;
  held.seen = step.time;
  return held.idleness.lasts(step.time, held.processor_time, held_by(*held.pod, step));
}

}  // namespace evictd::simulate
