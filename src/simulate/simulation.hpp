#pragma once
#include <boost/json/fwd.hpp>

#include "simulate/scenario.hpp"

namespace evictd::simulate {

/// Replays the scenario through the agent's own state machine: one object a step. What its passes ask for is answered
/// from the step. Time is the scenario's.
[[nodiscard]] boost::json::array replay(const Scenario& scenario);

}  // namespace evictd::simulate
