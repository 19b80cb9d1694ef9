#pragma once
#include "commands/command_line.hpp"

namespace evictd::commands {

/// `evictd inspect -f POD.yaml [--memory-capacity 4Gi]`
[[nodiscard]] Command inspect_command();

}  // namespace evictd::commands
