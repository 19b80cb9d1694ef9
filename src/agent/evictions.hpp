#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/black_box.hpp"
#include "agent/clock.hpp"
#include "agent/decision_log.hpp"
#include "agent/decisions.hpp"
#include "agent/eviction_records.hpp"
#include "agent/node_reports.hpp"
#include "agent/observer.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/running_pods.hpp"
#include "agent/usage.hpp"
#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/event.hpp"
#include "core/eviction.hpp"
#include "core/eviction_message.hpp"
#include "core/pod.hpp"
#include "core/synchronizer.hpp"
#include "core/wake.hpp"
#include "evict/eviction_record.hpp"
#include "evict/pod_stopper.hpp"
#include "evict/progress.hpp"
#include "kube/reporter.hpp"
#include "node/kubelet_lookout.hpp"
#include "pods/runtime_pod.hpp"
#include "state/state_saver.hpp"
#include "wake/wakes.hpp"

namespace evictd::agent {

/// What becomes of a decision that a pod must go: from the intent to the end of its cleanup. On the reactor.
class Evictions final : public PodListener {
 public:
  struct Options {
    core::Duration cleanup_timeout = std::chrono::seconds(30);
    bool dry_run = false;  ///< decide and report, touch nothing
  };
  /// All of these must outlive this.
  struct Parts {
    EvictionRecords& records;
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
    BlackBox* black_box = nullptr;      ///< null: evictions are not explained
    /// Null: since when a threshold has been met is not told, and what was measured of a pod on its way is not waited
    /// for.
    const core::Synchronizer* policy = nullptr;
    node::KubeletLookout* kubelet = nullptr;  ///< null: nobody unmounts what a pod leaves mounted
  };

  Evictions(boost::asio::any_io_executor reactor, Options options, Parts parts);

  /// From now on decisions are carried out no more, as in a dry run, or are again. What was begun goes on, and a node
  /// that goes down ends its pods; what was only reported is forgotten once decisions are carried out.
  void only_watch(bool only_watch);
  /// Whether decisions are carried out.
  [[nodiscard]] bool acts() const { return acts_; }

  /// Carries out what was decided. The intent is recorded and saved before anything is done to the pod; a pod without
  /// a grace period is killed before this returns. What comes of it refers to the intent by its id.
  void begin(core::Eviction eviction, core::Turn& turn);

  struct Displaced {
    core::Displacement cause{};
    std::string message;  ///< as the pod's status will say it
  };
  /// Ends a pod for a need that is not the node's own, through the same steps as all others: its events are those of
  /// an eviction. A pod that is going already, and is dead or will be gone as soon, give or take a second of a grace
  /// period, is left to it. `ended`, which may be empty, is called once when nothing is left of the pod (true), or when
  /// waiting for that took too long.
  void displace(const core::PodPtr& pod, Displaced why, core::Duration grace_period,
                std::move_only_function<void(bool gone)> ended = {});

  /// Waits until nothing is under way, at most so long: what was begun is carried to the kill. For evictd's end.
  [[nodiscard]] boost::asio::awaitable<void> finished_within(core::Duration patience);

  /// Finishes what an earlier evictd began and the records restored; nothing is begun again. Once the reactor runs.
  void go_on();
  /// Only now it shows whether pods that went by an earlier evictd run again: of those that do not, the cluster is told
  /// what it may not have learnt.
  void pods_changed(const core::PodList& pods) override;

  /// How many were begun since evictd's start, in a dry run as well; without those for others' needs.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Whether the pod went, and is not known to run again: nothing of it counts any more, whatever lists still say.
  [[nodiscard]] bool has_ended(std::string_view uid) const { return parts_.records.has_ended(uid); }
  /// Whether the pod is on its way out.
  [[nodiscard]] bool is_under_way(std::string_view uid) const { return parts_.records.contains(uid); }
  /// How many pods are on their way out.
  [[nodiscard]] std::size_t under_way() const { return parts_.records.under_way().size(); }
  /// What every pod on its way out still gives back, measured now. A pod that cannot be measured is left out: while
  /// nobody knows what comes back, nobody else goes for it.
  [[nodiscard]] std::vector<core::Releasing> releasing() const;
  /// Whether the fence stands in the way of pods that did nothing (agent/coming_back.hpp), or holds them for an evictd
  /// that does nothing.
  [[nodiscard]] bool lifts_fence(std::span<const core::Releasing> releasing) const;

 private:
  [[nodiscard]] core::EvictionMessage full_message(const core::Eviction& eviction) const;
  void stop(evict::EvictionRecord record, const pods::RuntimePodPtr& listed);
  void on_progress(const std::string& uid, std::uint64_t id, const evict::Progress& progress);
  void tell_of_hold(std::uint64_t id, const evict::Progress& progress);
  void explain(const evict::EvictionRecord& record, core::Instant killed);
  void remember_release(const evict::EvictionRecord& record, const evict::Progress& progress);
  boost::asio::awaitable<void> pretend(std::string uid, std::uint64_t id);
  void tell_of_dry_run(const core::Event& event);
  void let_go(evict::EvictionRecord record, bool gone);
  boost::asio::awaitable<void> end(evict::EvictionRecord record, bool released);
  [[nodiscard]] std::optional<core::DiskRelease> disk_release(const evict::EvictionRecord& record) const;
  /// For what is not back with the processes: as long as a kubelet lets pass between two looks at the node.
  static constexpr core::Duration patience_after_the_end = std::chrono::seconds(10);
  boost::asio::awaitable<void> wait_for_disk(const evict::EvictionRecord& record, core::Instant give_up);
  void look_for_kubelet(const core::Pod& pod);
  boost::asio::awaitable<void> see_whether_kubelet_runs();
  [[nodiscard]] bool awaits_unmount(const evict::EvictionRecord& record) const;
  boost::asio::awaitable<void> wait_for_unmount(const evict::EvictionRecord& record, core::Instant give_up);
  /// Whether the runtime lists it with a container that was not killed when the pod was.
  [[nodiscard]] bool is_listed_anew(const evict::EvictionRecord& record) const;
  void report_to_cluster(const evict::EvictionRecord& record) const;

  boost::asio::any_io_executor reactor_;
  Options options_;
  Parts parts_;
  std::multimap<std::string, std::move_only_function<void(bool)>, std::less<>>
      displaced_;                                                // by uid: whom to tell of the end
  std::map<std::string, std::uint64_t, std::less<>> pretended_;  // by uid: intents that are not carried out
  std::map<std::uint64_t, evict::EvictionRecord> overtaken_;  // by id: the pod was held, and how that ends is not told
  std::vector<evict::EvictionRecord> untold_;  // of pods that went by an earlier evictd, until there is a list of pods
  std::uint64_t count_ = 0;
  bool acts_;
  bool kubelet_runs_;  // as far as is known: it is looked for when it matters, and one counts as there until then
  bool stopping_ = false;
};

}  // namespace evictd::agent
