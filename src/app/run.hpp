#pragma once
#include "app/configuration.hpp"

namespace evictd::app {

/// Guards this node until SIGINT or SIGTERM. With `dry_run` it decides and reports, and touches no pod. An error is
/// logged, one line; returns the exit code (os/exit_code.hpp).
[[nodiscard]] int run_agent(const ConfigurationFiles& files, bool dry_run);

}  // namespace evictd::app
