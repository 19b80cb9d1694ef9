#pragma once
#include <vector>

#include "config/agent_keys.hpp"

// The keys of eviction.*, in the order in which they are listed.

namespace evictd::config {

[[nodiscard]] std::vector<AgentKey> eviction_keys();
[[nodiscard]] std::vector<AgentKey> brake_keys();
[[nodiscard]] std::vector<AgentKey> hook_keys();

}  // namespace evictd::config
