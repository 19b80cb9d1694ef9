#pragma once
#include "app/configuration.hpp"
#include "core/error.hpp"

namespace evictd::app {

/// Whether evictd's parts can be made as a loaded configuration wants them: all that can be wrong with it short of
/// trying it. Reads the files that it names. The error names the key.
[[nodiscard]] Result<void> check_parts(const Configuration& configuration);

}  // namespace evictd::app
