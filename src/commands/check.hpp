#pragma once
#include "commands/command_line.hpp"

namespace evictd::commands {

/// `evictd check`: validates the configuration and prints what is in force and what the host offers.
[[nodiscard]] Command check_command();

}  // namespace evictd::commands
