#pragma once
#include "app/configuration.hpp"

namespace evictd::app {

/// Stands before the container runtime until SIGINT or SIGTERM. Returns the exit code; errors are logged.
[[nodiscard]] int run_cri_proxy(const ConfigurationFiles& files);

}  // namespace evictd::app
