#pragma once
#include <state.pb.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/threshold_overlay.hpp"
#include "events/event_log.hpp"
#include "os/file_descriptor.hpp"
#include "state/state_file.hpp"

namespace evictd::state {

/// What the state file's descriptor is called among those that systemd keeps.
inline constexpr std::string_view stored_name = "evictd-state";

/// What an earlier evictd left (runtimeDirectory), read before anything else is made.
struct FoundState {
  /// Without a path, or where the file cannot be used, which is warned of, nothing is found and nothing will be saved.
  /// `inherited`: what systemd keeps as `stored_name`, or none.
  static FoundState read(const std::string& path, os::FileDescriptor inherited);

  /// The events that were not in the history yet.
  [[nodiscard]] events::RescuedEvents events();
  /// The thresholds that were changed by calls and not saved.
  [[nodiscard]] core::ThresholdOverlay live_thresholds() const;

  std::string path;
  std::optional<StateFile> file{};  ///< absent: nothing is saved
  v1::AgentState state{};           ///< of the agent; empty where there was none
};

}  // namespace evictd::state
