#pragma once
#include "commands/command_line.hpp"

namespace evictd::commands {

/// `evictd run`: the agent. Builds its parts, wires them and runs until SIGTERM or SIGINT.
[[nodiscard]] Command run_command();

}  // namespace evictd::commands
