#pragma once
#include <state.pb.h>

#include <cstddef>
#include <optional>
#include <string>

#include "agent/agent.hpp"
#include "agent/evictions.hpp"
#include "agent/node_reports.hpp"
#include "core/error.hpp"
#include "core/threshold_overlay.hpp"
#include "events/event_log.hpp"
#include "node/pod_cgroups.hpp"
#include "state/event_saver.hpp"
#include "state/state_file.hpp"
#include "state/state_saver.hpp"
#include "state/state_writer.hpp"

namespace evictd::host {
class InheritedDescriptors;
}

namespace evictd::agent {

/// What evictd leaves to the one that comes after it, and takes over from the one before. On the reactor.
struct Restartable {
  Agent& agent;
  Evictions& evictions;
  NodeReports& reports;
  node::PodCgroups& cgroups;

  /// Goes on where an earlier evictd ended, before the agent runs: what it had begun is finished, not begun again.
  void restore(const state::v1::AgentState& kept) const;
  /// What restore() needs, but for the evictions (Evictions::to_save()).
  void add_to(state::v1::AgentState& kept) const;
};

/// What survives evictd's death (runtimeDirectory): the agent's state, and the newest events. On the reactor.
class RestartState final : public state::StateSaver, private events::SavesEvents {
 public:
  /// Reads what an earlier evictd left. Without a path, or where the file cannot be used, which is warned of, nothing
  /// is kept.
  RestartState(const std::string& path, host::InheritedDescriptors& inherited);

  /// The events that an earlier evictd left. Once.
  [[nodiscard]] events::RescuedEvents take_events();
  /// The thresholds that were changed by calls and not saved.
  [[nodiscard]] core::ThresholdOverlay live_thresholds() const;

  /// Gives the agent what was left to it, before it runs, and keeps what it says from now on; an event of `events` is
  /// told to nobody before it is in the file. `live` are the thresholds as calls change them. All must outlive this,
  /// but nothing of theirs is used by its destructor.
  void begin(const Restartable& agent, const core::ThresholdOverlay& live, events::EventLog& events);
  /// Keeps what there is now: nothing before begin(), and where there is no file. Also for an orderly end, once the
  /// reactor does not run any more.
  void save() override;

 private:
  void keep();
  void save_events() override;
  void complain(const Error& error);

  struct Kept {
    Restartable agent;
    const core::ThresholdOverlay& live;
    state::EventSaver events;
  };

  std::string path_;
  std::optional<state::StateFile> file_;
  state::v1::AgentState found_;
  std::optional<Kept> kept_;  // since begin(), where there is a file
  state::StateWriter writer_{state::StateFile::largest_content - mark_size};
  std::string last_;          // what was stored, serialized, without the mark of the events
  bool handed_over_ = false;  // systemd has the descriptor
  bool complained_ = false;
  bool told_of_shedding_ = false;

  /// What the mark of the events takes at most.
  static constexpr std::size_t mark_size = 64;
};

}  // namespace evictd::agent
