#pragma once
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "core/eviction.hpp"
#include "core/held_time.hpp"
#include "core/idleness.hpp"
#include "core/pod.hpp"
#include "simulate/scenario.hpp"

namespace evictd::simulate {

/// Pods that have a little time before they are killed, as a scenario has it: `usage` says who has ended by itself,
/// `answered` whose hooks have, and `idle` who does nothing. A pod is looked at once a step.
class SimulatedHolds {
 public:
  explicit SimulatedHolds(const HoldSettings& settings) : settings_{settings} {}

  /// How the pod of this eviction is held; null: it is killed at once, or has the time of a soft threshold anyway.
  boost::json::value begin(const core::Eviction& eviction, const ScenarioStep& step);
  /// Those that are not held any more: who, after how long, and why.
  boost::json::array end(const ScenarioStep& step);

 private:
  struct Held {
    core::PodPtr pod;
    core::Signal signal;
    std::int64_t required = 0;
    core::Instant since{};
    core::Instant seen{};  ///< at the step before
    core::Duration processor_time{};
    core::Idleness idleness{};
  };

  [[nodiscard]] std::optional<std::string> why_over(Held& held, const ScenarioStep& step) const;
  [[nodiscard]] bool is_idle(Held& held, const ScenarioStep& step) const;

  HoldSettings settings_;
  std::vector<Held> held_;
};

}  // namespace evictd::simulate
