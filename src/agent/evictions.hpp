#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/clock.hpp"
#include "agent/decision_log.hpp"
#include "agent/decisions.hpp"
#include "agent/node_reports.hpp"
#include "agent/observer.hpp"
#include "agent/running_pods.hpp"
#include "agent/usage.hpp"
#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/event.hpp"
#include "core/eviction.hpp"
#include "core/eviction_message.hpp"
#include "core/in_flight.hpp"
#include "core/pod.hpp"
#include "core/wake.hpp"
#include "evict/eviction_record.hpp"
#include "evict/pod_stopper.hpp"
#include "evict/progress.hpp"
#include "kube/reporter.hpp"
#include "pods/catalog.hpp"
#include "pods/cgroup_name.hpp"
#include "pods/runtime_pod.hpp"
#include "state/state_saver.hpp"
#include "state/state_writer.hpp"
#include "wake/wakes.hpp"

namespace evictd::state::v1 {
class AgentState;
}

namespace evictd::agent {

/// What becomes of a decision that a pod must go: from the intent to the end of its cleanup. It owns the evictions that
/// are under way and remembers those that are over. On the reactor.
class Evictions {
 public:
  struct Options {
    core::Duration cleanup_timeout = std::chrono::seconds(30);
    bool dry_run = false;  ///< decide and report, touch nothing
  };
  /// All of these must outlive this.
  struct Parts {
    evict::PodStopper& stopper;
    RunningPods& pods;
    Usage& usage;
    Observer& observer;
    DecisionLog& log;
    Decisions& decisions;
    NodeReports& reports;
    state::StateSaver& state;
    wake::Wakes& wakes;
    Clock& clock;
    kube::Reporter* cluster = nullptr;  ///< null: no API server is told anything
  };

  Evictions(boost::asio::any_io_executor reactor, Options options, Parts parts);

  /// Carries out what was decided. The intent is recorded and saved before anything is done to the pod; a pod without
  /// a grace period is killed before this returns. What comes of it refers to the intent by its id.
  void begin(core::Eviction eviction, core::Turn& turn);

  struct Displaced {
    core::Displacement cause{};
    std::string message;  ///< as the pod's status will say it
  };
  /// Ends a pod for a need that is not the node's own, through the same steps as all others: its events are those of
  /// an eviction. A pod that is going already, and as soon, is left to it. `ended`, which may be empty, is called once
  /// when nothing is left of the pod (true), or when waiting for that took too long.
  void displace(const core::PodPtr& pod, Displaced why, core::Duration grace_period,
                std::function<void(bool gone)> ended = {});

  /// Waits until nothing is under way, at most so long: what was begun is carried to the kill. For evictd's end.
  [[nodiscard]] boost::asio::awaitable<void> finished_within(core::Duration patience);

  // A restart.

  /// Takes over what an earlier evictd had begun, and what it remembered. Whatever was begun too long ago is left
  /// alone, and taken out of `in_flight`, which is the state machine's.
  void restore(const state::v1::AgentState& kept, std::vector<core::InFlight::Entry>& in_flight);
  /// Finishes what was restored; nothing is begun again. Once the reactor runs.
  void go_on();
  /// What restore() needs; the records hold until the reactor goes on.
  [[nodiscard]] std::vector<state::SavedEviction> to_save() const;

  // What there is.

  /// Whether the pod is on its way out.
  [[nodiscard]] bool contains(std::string_view uid) const { return under_way_.contains(uid); }
  /// Whether the pod is on its way out, or went a short while ago.
  [[nodiscard]] bool knows(const pods::NamedUid& named) const;
  /// By pod uid.
  [[nodiscard]] const std::map<std::string, evict::EvictionRecord, std::less<>>& under_way() const {
    return under_way_;
  }
  /// How many were begun since evictd's start, in a dry run as well; without those for others' needs.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// What every pod on its way out still gives back, measured now. A pod that cannot be measured is left out: while
  /// nobody knows what comes back, nobody else goes for it.
  [[nodiscard]] std::vector<core::Releasing> releasing() const;
  /// Whether the fence stands in the way of pods that did nothing (agent/coming_back.hpp).
  [[nodiscard]] bool lifts_fence(std::span<const core::Releasing> releasing) const;

  // What the pods' lists and the API server say.

  /// The pods that went, are not known to have returned, and whose cleanup ended before that time: a list that was
  /// asked for then shows whether they run again. By uid.
  [[nodiscard]] std::vector<std::string> ended_before(core::Instant time);
  /// A pod of ended_before() runs again. A kubelet that has not learnt of the eviction, say, starts it: then it is a
  /// pod like any other, and goes if it has to.
  void returned(const core::Pod& pod);
  /// Tells the cluster's reporter what the API server's watch has of the pods that went.
  void compare_statuses(const pods::Catalog& catalog) const;

 private:
  /// A pod whose cleanup is over: the cluster may still have to learn of it, and its cgroup is no unlisted pod's.
  struct Evicted {
    evict::EvictionRecord record;
    core::Instant until;                   // for how long it is remembered
    std::optional<core::Instant> ended{};  // absent: its disk space is still awaited
    bool returned = false;                 // it was started again since
  };

  [[nodiscard]] core::EvictionMessage full_message(const core::Eviction& eviction) const;
  void stop(evict::EvictionRecord record, const pods::RuntimePodPtr& pod);
  void on_progress(const std::string& uid, std::uint64_t id, const evict::Progress& progress);
  void remember_release(const evict::EvictionRecord& record, const evict::Progress& progress);
  void remember(const evict::EvictionRecord& record);
  boost::asio::awaitable<void> pretend(std::string uid);
  boost::asio::awaitable<void> end(evict::EvictionRecord record, bool released);
  boost::asio::awaitable<void> wait_for_disk(const evict::EvictionRecord& record);
  void report_to_cluster(const evict::EvictionRecord& record) const;

  boost::asio::any_io_executor reactor_;
  Options options_;
  Parts parts_;
  std::map<std::string, evict::EvictionRecord, std::less<>> under_way_;           // by pod uid
  std::map<std::string, Evicted, std::less<>> evicted_;                           // the same
  std::multimap<std::string, std::function<void(bool)>, std::less<>> displaced_;  // by uid: whom to tell of the end
  std::uint64_t count_ = 0;
  bool stopping_ = false;
};

}  // namespace evictd::agent
