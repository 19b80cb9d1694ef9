#pragma once
#include <string>
#include <vector>

#include "config/agent_configuration.hpp"
#include "config/kubelet_configuration.hpp"

namespace evictd::app {

/// What changed in the configuration's files while evictd runs, but for thresholds, which tell of themselves.
struct ConfigurationChanges {
  std::vector<std::string> lines{};  ///< "log.level: info -> debug"; none: nothing changed
  bool needs_restart = false;        ///< for one of them at least; the log's level takes effect at once

  /// In one line, for the log.
  [[nodiscard]] std::string message() const;
};

/// What the files say, evictd's own and the kubelet's.
struct WrittenSettings {
  config::AgentConfiguration agent;
  config::KubeletConfiguration kubelet;
};

/// From `before` to `after`. What is at last as it was at the start is in force: it needs no restart.
[[nodiscard]] ConfigurationChanges changes_between(const WrittenSettings& before, const WrittenSettings& after,
                                                   const WrittenSettings& start);

}  // namespace evictd::app
