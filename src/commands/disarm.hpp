#pragma once
#include "commands/command_line.hpp"

namespace evictd::commands {

/// `evictd disarm`: lifts a fence or tripwire that an evictd left behind, as systemd's ExecStopPost or by hand, and
/// says what it did. None is a success too, and a memory.high that evictd did not set stays.
[[nodiscard]] Command disarm_command();

}  // namespace evictd::commands
