#pragma once
#include <state.pb.h>

#include <optional>
#include <string>

#include "agent/state_file.hpp"
#include "core/threshold_overlay.hpp"

namespace evictd::agent {
class Agent;
}
namespace evictd::host {
class InheritedDescriptors;
}

namespace evictd::commands {

class LiveThresholds;

/// What survives evictd's death (eviction.stateFile). On the reactor.
class RestartState {
 public:
  /// Reads what an earlier evictd left. Without a path, or where the file cannot be used, which is warned of, nothing
  /// is kept.
  RestartState(const std::string& path, host::InheritedDescriptors& inherited);

  /// The thresholds that were changed by calls and not saved.
  [[nodiscard]] core::ThresholdOverlay live_thresholds() const;

  /// Gives the agent what was left to it, before it runs, and keeps what it says from now on. Both must outlive this.
  void begin(agent::Agent& agent, const LiveThresholds& thresholds);

 private:
  void keep(const agent::Agent& agent, const LiveThresholds& thresholds);

  std::string path_;
  std::optional<agent::StateFile> file_;
  state::v1::AgentState found_;
  std::string last_;          // what was stored, serialized
  bool handed_over_ = false;  // systemd has the descriptor
  bool complained_ = false;
};

}  // namespace evictd::commands
