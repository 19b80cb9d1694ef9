#pragma once
#include <string>

#include "config/agent_configuration.hpp"
#include "core/error.hpp"

namespace evictd::app {

/// Lifts a fence or tripwire (notifier.v2) that an evictd left at the pods' cgroup, and says in a line what it found
/// and did; it calls both a fence. None is a success too, and a memory.high that evictd did not set stays. The error is
/// that of the cgroup.
[[nodiscard]] Result<std::string> disarm(const config::AgentConfiguration& settings);

}  // namespace evictd::app
