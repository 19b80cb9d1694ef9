#pragma once
#include <string>
#include <vector>

#include "config/agent_configuration.hpp"
#include "config/kubelet_configuration.hpp"

namespace evictd::app {

/// What changed in the configuration's files while evictd runs, but for thresholds, which tell of themselves.
struct ConfigurationChanges {
  std::vector<std::string> lines{};  ///< "log.level: info -> debug"; none: nothing changed
  bool needs_restart = false;        ///< the log's level alone takes effect at once

  /// In one line, for the log.
  [[nodiscard]] std::string message() const;
};

[[nodiscard]] ConfigurationChanges changes_between(const config::AgentConfiguration& agent_before,
                                                   const config::AgentConfiguration& agent_after,
                                                   const config::KubeletConfiguration& kubelet_before,
                                                   const config::KubeletConfiguration& kubelet_after);

}  // namespace evictd::app
