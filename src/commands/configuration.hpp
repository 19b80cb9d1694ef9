#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/agent_configuration.hpp"
#include "config/kubelet_configuration.hpp"
#include "config/threshold_drop_in.hpp"
#include "core/error.hpp"
#include "core/eviction_settings.hpp"
#include "os/log.hpp"

namespace evictd::commands {

class CommandLine;

/// What --config and --kubelet-config name. An absent one is looked for where such files are kept; if it is not there,
/// the defaults hold.
struct ConfigurationFiles {
  std::optional<std::string> agent;    ///< otherwise /etc/evictd/agent.yaml
  std::optional<std::string> kubelet;  ///< otherwise where nodes usually have it (find_kubelet_configuration)
};

/// Both documents, checked together.
struct Configuration {
  config::AgentConfiguration agent;  ///< without an "auto"
  config::KubeletConfiguration kubelet;
  std::vector<config::ThresholdDropIn> threshold_drop_ins;
  core::EvictionPolicy policy;            ///< of the kubelet's configuration with the drop-ins on top
  std::optional<std::string> agent_file;  ///< absent: defaults
  std::optional<std::string> kubelet_file;
  std::vector<std::string> found;  ///< on the machine, for what the documents leave open: a line each
};

/// Declares --config and --kubelet-config, which fill in `files`.
void add_file_options(CommandLine& line, ConfigurationFiles& files);

/// The error names file, line, key and value.
[[nodiscard]] Result<Configuration> load_configuration(const ConfigurationFiles& files);

[[nodiscard]] os::LogLevel log_level(config::LogLevel level);

}  // namespace evictd::commands
