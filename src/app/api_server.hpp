#pragma once
#include "api/server.hpp"
#include "config/agent_configuration.hpp"
#include "core/error.hpp"

namespace evictd::app {

/// The API's server as the configuration wants it, with its files and its group looked up: an error is a wrong
/// configuration, and names the key. Waits for disks and name services.
[[nodiscard]] Result<api::ServerOptions> api_server_options(const config::AgentConfiguration& settings);

/// Makes the directories of its sockets where only those are missing, and listens.
[[nodiscard]] Result<void> start(api::Server& server, const api::ServerOptions& options);

}  // namespace evictd::app
