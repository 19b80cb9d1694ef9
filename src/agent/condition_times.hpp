#pragma once
#include <map>
#include <optional>

#include "core/duration.hpp"
#include "core/pressure.hpp"

namespace evictd::state::v1 {
class AgentState;
}

namespace evictd::agent {

/// The node's conditions as they were reported last, and since when each of them is as it is. It survives a restart. On
/// the reactor.
class ConditionTimes {
 public:
  void change(const core::NodeConditions& conditions, core::Instant now);

  [[nodiscard]] const core::NodeConditions& conditions() const { return conditions_; }
  /// Absent while it has not changed yet.
  [[nodiscard]] std::optional<core::Instant> since(core::NodeCondition condition) const;

  /// What an earlier evictd left: the state machine restores the conditions themselves.
  void restore(const state::v1::AgentState& kept, const core::NodeConditions& conditions);
  /// What restore() needs.
  void add_to(state::v1::AgentState& kept) const;

 private:
  core::NodeConditions conditions_;
  std::map<core::NodeCondition, core::Instant> since_;
};

}  // namespace evictd::agent
