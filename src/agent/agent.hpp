#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "agent/alarms.hpp"
#include "agent/clock.hpp"
#include "agent/decider.hpp"
#include "agent/decision_log.hpp"
#include "agent/evictions.hpp"
#include "agent/node_reports.hpp"
#include "agent/observer.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/usage.hpp"
#include "core/action.hpp"
#include "core/answer.hpp"
#include "core/event.hpp"
#include "core/eviction_settings.hpp"
#include "core/filesystem_layout.hpp"
#include "core/pass.hpp"
#include "core/pod.hpp"
#include "evict/eviction_record.hpp"
#include "evict/node_reclaim.hpp"
#include "node/node_memory.hpp"
#include "wake/wakes.hpp"

namespace evictd::agent {

/// The loop: wake, observe, decide, act. On the reactor.
class Agent {
 public:
  /// All of these must outlive this.
  struct Parts {
    Observer& observer;
    Usage& usage;
    DecisionLog& recorder;
    Evictions& evictions;
    PodTracker& pods;
    evict::NodeReclaimer& reclaimer;
    Alarms& alarms;
    NodeReports& reports;
  };

  /// The clock and the decider, too, must outlive this.
  Agent(boost::asio::any_io_executor reactor, Clock& clock, Decider& decider, Parts parts);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Finishes what was restored, then runs passes until stop(), and then waits for the evictions under way: what was
  /// begun is carried to the kill, for at most a few seconds.
  [[nodiscard]] boost::asio::awaitable<void> run();
  void stop();

  /// Other thresholds from now on: a pass begins and every source is armed anew before this returns.
  /// `evictions_within_a_minute`: as in core::PolicyChanged.
  void change_policy(core::EvictionPolicy policy, std::optional<std::size_t> evictions_within_a_minute);

 private:
  void pass(const wake::Wake& wake);
  void warn_of_unknown_layout();
  void drive(core::Pass pass, core::Turn turn, core::Answer answer = {});
  [[nodiscard]] core::Answer perform(const core::Action& action, core::Turn& turn);
  void answer_later(core::Pass pass, const core::Action& question, core::Turn turn);
  [[nodiscard]] core::Answer answer_from_cgroups(const core::ReadPodUsage& request, core::Turn& turn);
  [[nodiscard]] bool waits_for_list(const core::PodList& pods, const core::PodsMeasured& measured);
  boost::asio::awaitable<void> answer_from_disk(core::Pass pass, core::ReadPodUsage request, core::Turn turn);
  boost::asio::awaitable<void> reclaim(core::Pass pass, core::ReclaimNode action, core::Turn turn);

  boost::asio::any_io_executor reactor_;
  Clock& clock_;
  Decider& decider_;
  Parts parts_;
  std::vector<core::Level> levels_;
  node::NodeMemoryReading reading_;               // of the last pass
  std::optional<core::FilesystemLayout> layout_;  // told last; before that the one of an earlier evictd holds
  bool ignores_disks_ = false;                    // one is short, in the last pass, and its layout is not known
  bool stopping_ = false;
};

}  // namespace evictd::agent
