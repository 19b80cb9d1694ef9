#pragma once
#include <state.pb.h>

#include <optional>
#include <string>

#include "agent/event_saver.hpp"
#include "agent/restart.hpp"
#include "agent/state_file.hpp"
#include "agent/state_saver.hpp"
#include "agent/state_writer.hpp"
#include "core/error.hpp"
#include "core/threshold_overlay.hpp"
#include "events/event_log.hpp"

namespace evictd::host {
class InheritedDescriptors;
}

namespace evictd::commands {

class LiveThresholds;

/// What survives evictd's death (runtimeDirectory): the agent's state, and the newest events. On the reactor.
class RestartState final : public agent::StateSaver {
 public:
  /// Reads what an earlier evictd left. Without a path, or where the file cannot be used, which is warned of, nothing
  /// is kept.
  RestartState(const std::string& path, host::InheritedDescriptors& inherited);

  /// The events that an earlier evictd left. Once.
  [[nodiscard]] events::RescuedEvents take_events();
  /// The thresholds that were changed by calls and not saved.
  [[nodiscard]] core::ThresholdOverlay live_thresholds() const;

  /// Gives the agent what was left to it, before it runs, and keeps what it says from now on; an event of `events` is
  /// told to nobody before it is in the file. All must outlive this, but nothing of theirs is used by its destructor.
  void begin(const agent::Restartable& agent, const LiveThresholds& thresholds, events::EventLog& events);
  /// Keeps what there is now: nothing before begin(), and where there is no file. Also for an orderly end, once the
  /// reactor does not run any more.
  void save() override;

 private:
  void keep();
  void keep_events();
  void complain(const Error& error);

  struct Kept {
    agent::Restartable agent;
    const LiveThresholds& thresholds;
    agent::EventSaver events;
  };

  std::string path_;
  std::optional<agent::StateFile> file_;
  state::v1::AgentState found_;
  std::optional<Kept> kept_;  // since begin(), where there is a file
  agent::StateWriter writer_{agent::StateFile::largest_content - mark_size};
  std::string last_;          // what was stored, serialized, without the mark of the events
  bool handed_over_ = false;  // systemd has the descriptor
  bool complained_ = false;
  bool told_of_shedding_ = false;

  /// What the mark of the events takes at most.
  static constexpr std::size_t mark_size = 64;
};

}  // namespace evictd::commands
