#include "simulate/scenario.hpp"

#include <boost/json.hpp>

#include "commands/json.hpp"
#include "simulate/simulation.hpp"
#include "target.hpp"

// Scenarios, and with them the state machine and admission: what could be read is replayed.

namespace evictd::fuzz {

void run(std::string_view input) {
  const auto scenario = simulate::parse_scenario(input, "scenario.yaml");
  if (!is_good(scenario)) return;
  const auto steps = simulate::replay(*scenario);
  check(steps.size() == scenario->steps.size(), "every step has its answer");
  check(simulate::replay(*scenario) == steps, "the same again gives the same");
  check(boost::json::parse(commands::to_json_text(steps)) == steps, "what is printed is JSON");
}

}  // namespace evictd::fuzz
