#include "agent/condition_times.hpp"

#include <state.pb.h>

#include <string>

#include "state/restored_state.hpp"
#include "state/state_writer.hpp"

namespace evictd::agent {

void ConditionTimes::change(const core::NodeConditions& conditions, core::Instant now) {
  for (const auto& row : core::node_condition_rows)
    if (conditions.contains(row.condition) != conditions_.contains(row.condition)) since_[row.condition] = now;
  conditions_ = conditions;
}

std::optional<core::Instant> ConditionTimes::since(core::NodeCondition condition) const {
  const auto found = since_.find(condition);
  return found == since_.end() ? std::nullopt : std::optional(found->second);
}

void ConditionTimes::restore(const state::v1::AgentState& kept, const core::NodeConditions& conditions) {
  conditions_ = conditions;
  for (const auto& row : core::node_condition_rows)
    if (const auto since = kept.conditions_since_ns().find(std::string(row.name));
        since != kept.conditions_since_ns().end())
      since_.insert_or_assign(row.condition, state::restored(since->second));
}

void ConditionTimes::add_to(state::v1::AgentState& kept) const {
  for (const auto& [condition, since] : since_)
    (*kept.mutable_conditions_since_ns())[std::string(core::name(condition))] = state::keep(since);
}

}  // namespace evictd::agent
