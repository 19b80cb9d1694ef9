#pragma once
#include "commands/command_line.hpp"

namespace evictd::commands {

/// `evictd simulate SCENARIO.yaml`
[[nodiscard]] Command simulate_command();

}  // namespace evictd::commands
