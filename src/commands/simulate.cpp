#include "commands/simulate.hpp"

#include <boost/json.hpp>
#include <functional>
#include <memory>
#include <string>

#include "commands/json.hpp"
#include "config/yaml.hpp"
#include "os/exit_code.hpp"
#include "simulate/scenario.hpp"
#include "simulate/simulation.hpp"

namespace evictd::commands {
namespace {

int simulate_file(const std::string& path) {
  const auto text = config::read_text_file(path);
  if (!text) return os::wrong_usage(text.error());
  const auto scenario = simulate::parse_scenario(*text, path);
  if (!scenario) return os::wrong_usage(scenario.error());
  return print(to_json_text(simulate::replay(*scenario)));
}

}  // namespace

Command simulate_command() {
  return {.name = "simulate",
          .description = "Replay a scenario through the agent's own state machine and print what it would do as JSON",
          .declare = [](CommandLine& line) -> std::function<int()> {
            auto path = std::make_shared<std::string>();
            line.option({.names = "SCENARIO", .meaning = "The scenario, a YAML file", .required = true}, *path);
            return [path] { return simulate_file(*path); };
          }};
}

}  // namespace evictd::commands
