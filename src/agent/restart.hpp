#pragma once
#include <cstddef>
#include <string>

#include "agent/condition_times.hpp"
#include "agent/decider.hpp"
#include "agent/decision_log.hpp"
#include "agent/eviction_records.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/threshold_overlay.hpp"
#include "events/event_log.hpp"
#include "node/pod_cgroups.hpp"
#include "state/found_state.hpp"
#include "state/state_file.hpp"
#include "state/state_saver.hpp"
#include "state/state_writer.hpp"

namespace evictd::agent {

/// What of the agent survives evictd's death: each of these owns its part of it. On the reactor.
struct Survivors {
  Decider& decider;
  EvictionRecords& evictions;
  ConditionTimes& conditions;
};

/// Goes on where an earlier evictd ended, before the agent runs: what it had begun is finished, not begun again. The
/// victims' cgroups are read from now on. An eviction that began longer ago than `cleanup_timeout` beyond its grace
/// period is left alone, and told as failed.
void restore(const state::v1::AgentState& kept, const Survivors& survivors, node::PodCgroups& cgroups, DecisionLog& log,
             core::Duration cleanup_timeout, core::Instant now);

/// Saves what survives evictd's death (runtimeDirectory): the agent's state, and the newest events. On the reactor.
class RestartState final : public state::StateSaver, private events::SavesEvents {
 public:
  /// All of these must outlive this, but nothing of theirs is used by its destructor.
  struct Parts {
    Survivors agent;
    const core::ThresholdOverlay& live;  ///< the thresholds as calls change them
    events::EventLog& events;
  };

  /// Saves at once what there is, and from now on what is told; an event of the log is told to nobody before it is in
  /// the file. Saves nothing where there is no file.
  RestartState(state::FoundState found, const Parts& parts);

  /// Also for an orderly end, once the reactor does not run any more.
  void save() override;
  void rehearse(const evict::EvictionRecord& record) override;

 private:
  void save_events() override;
  void complain(const Error& error);

  state::FoundState found_;
  Parts parts_;
  std::optional<state::EventSaver> events_;  // absent: there is no file
  state::StateWriter writer_{state::StateFile::largest_content - mark_size};
  std::string last_;          // what was stored, serialized, without the mark of the events
  bool handed_over_ = false;  // systemd has the descriptor
  bool complained_ = false;
  bool told_of_shedding_ = false;

  /// What the mark of the events takes at most.
  static constexpr std::size_t mark_size = 64;
};

}  // namespace evictd::agent
