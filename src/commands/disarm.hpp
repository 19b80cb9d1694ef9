#pragma once
#include "commands/command_line.hpp"

namespace evictd::commands {

/// `evictd disarm`: undoes what an evictd left behind, a fence or tripwire, held pods and a raised oom_score_adj, as
/// systemd's ExecStopPost or by hand, and says what it did. None is a success too, and a memory.high that evictd did
/// not set stays.
[[nodiscard]] Command disarm_command();

}  // namespace evictd::commands
