#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/eviction_record.hpp"
#include "agent/fill_rates.hpp"
#include "agent/inferred_volumes.hpp"
#include "agent/listing_first.hpp"
#include "agent/memory_history.hpp"
#include "agent/node_observer.hpp"
#include "agent/pod_usage.hpp"
#include "agent/recorder.hpp"
#include "agent/state_writer.hpp"
#include "agent/unlisted_pods.hpp"
#include "core/action.hpp"
#include "core/answer.hpp"
#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/event.hpp"
#include "core/eviction_message.hpp"
#include "core/eviction_settings.hpp"
#include "core/filesystem_layout.hpp"
#include "core/pass.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"
#include "core/signal.hpp"
#include "core/synchronizer.hpp"
#include "core/threshold.hpp"
#include "cri/client.hpp"
#include "evict/evictor.hpp"
#include "evict/node_reclaim.hpp"
#include "evict/progress.hpp"
#include "host/systemd.hpp"
#include "kube/reporter.hpp"
#include "node/node_disk.hpp"
#include "node/node_memory.hpp"
#include "node/pod_cgroups.hpp"
#include "node/pod_directories.hpp"
#include "node/pod_disk.hpp"
#include "pods/catalog.hpp"
#include "pods/cri_pods.hpp"
#include "pods/runtime_pod.hpp"
#include "wake/deadline.hpp"
#include "wake/fallback_timer.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::v1 {
class NodeStatus;
}
namespace evictd::state::v1 {
class AgentState;
}

namespace evictd::agent {

struct AgentOptions {
  core::Duration refresh_interval = std::chrono::seconds(10);  ///< how often pods are listed without a reason
  core::Duration cleanup_timeout = std::chrono::seconds(30);
  node::PodRoots pod_roots{};                ///< where pods' volumes and logs lie
  core::SynchronizerOptions right_amount{};  ///< back-off and the limit of evictions
  bool dry_run = false;                      ///< decide and report, touch nothing
};

/// The loop: wake, observe, step, act. It owns the state machine and the evictions under way; all else it is given. On
/// the reactor.
class Agent {
 public:
  struct Parts {
    NodeObserver& observer;
    PodUsageReader& usage;
    node::NodeDisk& disk;
    node::PodCgroups& cgroups;
    node::PodDisk& pod_disk;
    pods::CriPods& pods;
    pods::Catalog& catalog;  ///< completes what `pods` lists
    UnlistedPods& unlisted;
    cri::Client& runtime;
    wake::Wakes& wakes;
    wake::Deadline& deadline;
    wake::FallbackTimer& fallback;
    std::vector<std::unique_ptr<wake::Source>>& sources;  ///< all, these two among them
    evict::Evictor& evictor;
    evict::NodeReclaimer& reclaimer;
    Recorder& recorder;
    host::ServiceManager& service;
    kube::Reporter* cluster = nullptr;  ///< null: no API server is told anything
  };

  Agent(boost::asio::any_io_executor reactor, core::EvictionPolicy policy, AgentOptions options, Parts parts);

  /// Goes on where an earlier evictd ended, before run(): what it had begun is finished, not begun again.
  void resume(const state::v1::AgentState& kept);
  /// What resume() needs, but for the evictions.
  void add_to(state::v1::AgentState& kept) const;
  /// The evictions that resume() needs; they hold until the agent goes on.
  [[nodiscard]] std::vector<SavedEviction> evictions_to_save() const;
  /// Called within the turn in which add_to() may have come to say something else, and before a kill. It is part of the
  /// way to the kill, so it must be quick. One listener.
  void on_change(std::function<void()> listener) { on_change_ = std::move(listener); }

  /// Runs passes until stop(), then waits for the evictions under way: what was begun is carried to the kill, for at
  /// most a few seconds.
  [[nodiscard]] boost::asio::awaitable<void> run();
  void stop();

  /// Pods came or went: lists them now and, since a pod's containers follow its cgroup, a little later again.
  void pods_changed();
  /// A pod wrote to its volumes or logs: measures them now if it has a limit.
  void files_changed(const std::string& uid);

  /// The pods of the node, completed as far as their specs are known. Never null; empty before `listed()`.
  [[nodiscard]] const core::PodListPtr& pods() const { return pods_; }
  /// Whether the runtime has told its pods since the start.
  [[nodiscard]] bool listed() const { return listed_once_; }
  [[nodiscard]] const core::NodeConditions& conditions() const { return conditions_; }
  /// Of the last pass; absent where the signal was not measured.
  [[nodiscard]] std::optional<std::int64_t> capacity(core::Signal signal) const {
    const auto& observation = reading_.observations[signal];
    return observation ? std::optional(observation->capacity) : std::nullopt;
  }
  /// Whether the pod is on its way out.
  [[nodiscard]] bool is_going(std::string_view uid) const { return evictions_.contains(uid); }
  /// Called with every new list of pods. One listener.
  void on_pods(std::function<void(const core::PodList&)> listener) { on_pods_ = std::move(listener); }

  struct Displaced {
    core::Displacement cause{};
    std::string message;  ///< as the pod's status will say it
  };
  /// Ends a pod for a need that is not the node's own, through the same evictor as all others: its events are those of
  /// an eviction. A pod that is going already, and as soon, is left to it. `ended`, which may be empty, is called once
  /// when nothing is left of the pod (true), or when waiting for that took too long.
  void displace(const core::PodPtr& pod, Displaced why, core::Duration grace_period,
                std::function<void(bool gone)> ended = {});

  /// Other thresholds from now on: a pass begins and every source is armed anew before this returns.
  /// `evictions_within_a_minute`: as in core::PolicyChanged.
  void change_policy(core::EvictionPolicy policy, std::size_t evictions_within_a_minute);
  /// The node's counters as they are now; those of the last pass where they cannot be read.
  [[nodiscard]] core::Observations observe() const;
  /// What thresholds can be advised by.
  [[nodiscard]] const MemoryHistory& memory_history() const { return memory_history_; }

  /// What GetNodeStatus tells of the agent; the composition root adds what only it knows. The node's counters are read
  /// anew (30 µs), the disks for the one who asks next; no pass begins because of them.
  [[nodiscard]] v1::NodeStatus status();

  /// Who would go for the signal if it were short now (core::Synchronizer::ranking): by the memory and the processes
  /// that pods have at this moment, by the disk usage as it was measured last. 5 ms at 1000 pods. Nothing comes of it.
  [[nodiscard]] std::vector<core::PlacedPod> ranking(core::Signal signal);

 private:
  void pass(const wake::Wake& wake);
  void tell(const core::Event& event, const Turn& turn);
  void drive(core::Pass pass, Turn turn, core::Answer answer = {});
  [[nodiscard]] core::Answer perform(const core::Action& action, Turn& turn);
  void evict(const core::Evict& action, Turn& turn);
  void pretend(EvictionRecord record);
  void answer_later(core::Pass pass, const core::Action& question, Turn turn);
  [[nodiscard]] core::Answer answer(const core::ReadPodUsage& request, Turn& turn);
  [[nodiscard]] core::Answer answer_from_cgroups(const core::ReadPodUsage& request, Turn& turn);
  [[nodiscard]] bool waits_for_list(const core::PodList& pods, const core::PodsMeasured& measured);
  [[nodiscard]] std::int64_t largest_stray() const;
  boost::asio::awaitable<void> answer_from_disk(core::Pass pass, core::ReadPodUsage request, Turn turn);
  boost::asio::awaitable<void> reclaim(core::Pass pass, core::ReclaimNode action, Turn turn);
  [[nodiscard]] core::EvictionMessage full_message(const core::Evict& action) const;
  void arm();
  [[nodiscard]] std::vector<core::Releasing> releasing() const;
  void on_progress(const std::string& uid, std::uint64_t id, const evict::Progress& progress);
  void conditions_changed(const core::ReportConditions& report, const Turn& turn);
  void report_service_status();
  void remember_release(const EvictionRecord& record, const evict::Progress& progress);
  void tell_threshold_met(const core::Threshold& threshold);
  boost::asio::awaitable<void> end_eviction(EvictionRecord record, bool released);
  boost::asio::awaitable<void> wait_for_disk(const EvictionRecord& record);

  void watch_disks();
  void read_disks(const wake::Wake& wake);
  boost::asio::awaitable<void> watch_pods();
  void watch_specs();
  boost::asio::awaitable<void> watch_local_storage();
  boost::asio::awaitable<void> watch_images();
  boost::asio::awaitable<void> find_image_filesystem();
  [[nodiscard]] core::PodListPtr pods_with_limits() const;
  [[nodiscard]] std::shared_ptr<const std::vector<wake::PodFiles>> files_of(const core::PodList& pods) const;
  void crossed(const core::ReportCrossing& crossing, const Turn& turn);
  bool find_unlisted();
  [[nodiscard]] std::set<std::string, std::less<>> add_unlisted(core::PodList& pods) const;
  void publish_pods();
  void find_returned(core::Instant asked);
  void remember_evicted(const EvictionRecord& record);
  void begin_eviction(EvictionRecord record, const pods::RuntimePodPtr& pod, core::Duration grace_period);
  [[nodiscard]] pods::RuntimePodPtr find_pod(std::string_view uid) const;
  void pods_refreshed(const Result<void>& result, core::Instant asked);
  void keep_victims(std::vector<node::PodCgroup>& cgroups) const;
  boost::asio::awaitable<void> wait_for_evictions();
  void changed() const {
    if (on_change_) on_change_();
  }
  void continue_evictions();
  void keep_progress(EvictionRecord& record, const evict::Progress& progress);
  void report_to_cluster(const EvictionRecord& record);
  void compare_statuses();

  boost::asio::any_io_executor reactor_;
  AgentOptions options_;
  Parts parts_;
  core::Synchronizer synchronizer_;
  std::vector<core::Level> levels_;
  wake::Arming arming_;
  node::NodeMemoryReading reading_;
  MemoryHistory memory_history_;
  FillRates fill_rates_;
  std::vector<core::Releasing> releasing_;  // as of the last pass
  ListingFirst listing_first_;
  std::map<std::string, EvictionRecord, std::less<>> evictions_;  // by pod uid
  /// A pod whose cleanup is over: the cluster may still have to learn of it, and its cgroup is no unlisted pod's.
  struct Evicted {
    EvictionRecord record;
    core::Instant until;                   // for how long it is remembered
    std::optional<core::Instant> ended{};  // absent: its disk space is still awaited
    bool returned = false;                 // it was started again since
  };
  std::map<std::string, Evicted, std::less<>> evicted_pods_;                      // by uid
  std::multimap<std::string, std::function<void(bool)>, std::less<>> displaced_;  // by uid: whom to tell of the end
  InferredVolumes inferred_volumes_;
  core::PodListPtr pods_ = std::make_shared<core::PodList>();
  std::function<void(const core::PodList&)> on_pods_;
  std::function<void()> on_change_;
  bool listed_once_ = false;
  core::FilesystemLayout layout_;
  std::vector<wake::Reason> disk_reasons_;  // of passes that the disks have not been read for yet
  boost::asio::steady_timer refresh_timer_;
  boost::asio::steady_timer local_storage_timer_;
  boost::asio::steady_timer images_timer_;
  int refreshes_due_ = 0;  // how many quick refreshes are left until things have settled
  std::string pods_error_;
  std::string image_filesystem_error_;
  bool ready_ = false;
  bool stopping_ = false;
  std::uint64_t passes_ = 0;
  std::uint64_t evicted_ = 0;
  core::NodeConditions conditions_;
  std::map<core::NodeCondition, core::Instant> conditions_since_;  // when each last changed
  std::string runtime_name_;                                       // of the last connection: "containerd 1.6.20"
};

}  // namespace evictd::agent
