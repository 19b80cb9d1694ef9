#pragma once
#include "commands/command_line.hpp"

namespace evictd::commands {

/// `evictd cri-proxy`: a socket that stands before the container runtime's and has the agent asked before a pod starts.
/// A process of its own, so that CRI outlives the agent.
[[nodiscard]] Command cri_proxy_command();

}  // namespace evictd::commands
