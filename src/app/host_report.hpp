#pragma once
#include <boost/json/fwd.hpp>

#include "config/agent_configuration.hpp"
#include "core/duration.hpp"

namespace evictd::app {

/// What the machine and its container runtime have for an evictd with these settings, for `evictd check`, with an entry
/// of its own where even the node's cgroup is missing. `shutdown_delay`: how long systemd is to wait for the pods.
/// Waits for the runtime.
[[nodiscard]] boost::json::object describe_host(const config::AgentConfiguration& agent, core::Duration shutdown_delay);

}  // namespace evictd::app
