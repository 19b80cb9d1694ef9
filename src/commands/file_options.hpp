#pragma once
#include "app/configuration.hpp"
#include "commands/command_line.hpp"

namespace evictd::commands {

/// Declares --config and --kubelet-config, which fill in `files`.
void add_file_options(CommandLine& line, app::ConfigurationFiles& files);

}  // namespace evictd::commands
