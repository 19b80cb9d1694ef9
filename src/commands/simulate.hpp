#pragma once
#include <boost/json/fwd.hpp>

#include "commands/command_line.hpp"
#include "commands/scenario.hpp"

namespace evictd::commands {

/// Replays the scenario through the agent's own state machine: one object a step. What its passes ask for is answered
/// from the step. Time is the scenario's.
[[nodiscard]] boost::json::array simulate(const Scenario& scenario);

/// `evictd simulate SCENARIO.yaml`
[[nodiscard]] Command simulate_command();

}  // namespace evictd::commands
