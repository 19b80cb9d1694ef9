#pragma once
#include <string>

#include "config/agent_configuration.hpp"
#include "core/error.hpp"

namespace evictd::app {

/// Lifts a fence (notifier.fence) that an evictd left at the pods' cgroup, and says in a line what it found and did. No
/// fence is a success too, and a memory.high that evictd did not set stays. The error is that of the cgroup.
[[nodiscard]] Result<std::string> disarm(const config::AgentConfiguration& settings);

}  // namespace evictd::app
