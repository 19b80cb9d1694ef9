#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/clock.hpp"
#include "agent/decision_log.hpp"
#include "agent/decisions.hpp"
#include "agent/eviction_records.hpp"
#include "agent/inferred_volumes.hpp"
#include "agent/list_pace.hpp"
#include "agent/listing_first.hpp"
#include "agent/local_storage.hpp"
#include "agent/pod_usage.hpp"
#include "agent/running_pods.hpp"
#include "agent/runtime_events.hpp"
#include "agent/unlisted_pods.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "cri/client.hpp"
#include "kube/reporter.hpp"
#include "node/pod_cgroups.hpp"
#include "pods/catalog.hpp"
#include "pods/cri_pods.hpp"
#include "pods/runtime_pod.hpp"
#include "state/state_saver.hpp"
#include "wake/cgroup_watch.hpp"
#include "wake/wakes.hpp"

namespace evictd::agent {

/// Hears of the pods that there are. On the reactor.
class PodListener {
 public:
  PodListener() = default;
  PodListener(const PodListener&) = delete;
  PodListener& operator=(const PodListener&) = delete;
  virtual ~PodListener() = default;

  virtual void pods_changed(const core::PodList& pods) = 0;
};

/// Which pods there are: those that the runtime lists, completed by the sources of specs, and those whose cgroups show
/// that they run although no list names them yet. It tells the state machine, and who listens, of every change, and a
/// little later those who make ready for the next shortage. On the reactor.
class PodTracker final : public RunningPods,
                         public wake::CgroupListener,
                         public RuntimeEventListener,
                         private ListedPods,
                         private pods::SpecListener,
                         private VolumeListener {
 public:
  /// All of these must outlive this.
  struct Parts {
    cri::Client& runtime;
    RuntimeEvents& events;
    pods::CriPods& pods;
    pods::Catalog& catalog;
    UnlistedPods& unlisted;
    InferredVolumes& volumes;
    node::PodCgroups& cgroups;
    PodUsageReader& usage;
    LocalStorage& storage;
    EvictionRecords& evictions;
    DecisionLog& log;
    Decisions& decisions;
    state::StateSaver& state;
    wake::Wakes& wakes;
    Clock& clock;
    kube::Reporter* cluster = nullptr;  ///< null: no API server is told anything
  };

  /// How often pods are listed without a reason; a new cgroup is one. A pod that went unnoticed can be missed by the
  /// ranking for this long, and listing costs containerd a few milliseconds.
  static constexpr core::Duration usual_interval = std::chrono::seconds(10);
  /// The same for as long as the runtime tells of its pods by itself. What it does not tell shows by then at the
  /// latest.
  static constexpr core::Duration told_interval = std::chrono::minutes(1);

  /// `refresh_interval`: the same, for tests.
  PodTracker(boost::asio::any_io_executor reactor, core::Duration refresh_interval, Parts parts);

  /// Begins to list the pods, and to read their specs; once. Until stop().
  void start();
  void stop();

  /// The pods of the node, completed as far as their specs are known. Never null; empty before `listed()`.
  [[nodiscard]] const core::PodListPtr& pods() const { return pods_; }
  /// Whether the runtime has told its pods since the start.
  [[nodiscard]] bool listed() const { return listed_; }
  /// Told of every new list of pods from now on, after those that asked for it before. The listener outlives this.
  void tell(PodListener& listener) { listeners_.push_back(&listener); }
  /// The same for those who make ready for the next shortage and take long: a pass that the kernel wakes meanwhile
  /// comes first, and of several lists they are told the last.
  void tell_later(PodListener& listener) { later_listeners_.push_back(&listener); }

  [[nodiscard]] pods::RuntimePodPtr find(std::string_view uid) const override;
  void changed() override;
  void cgroups_changed() override { changed(); }
  void on_runtime_event() override;

  /// Looks again at the pods that no list names, where there are any, or a cgroup has come of which the runtime has
  /// yet to tell: their memory may have changed, and their processes have come. In every pass, and behind the node, for
  /// it grows with the pods.
  void look_at_unlisted();
  /// Reads again what some of the pods hold, the largest and a quarter of the others, for passes that nothing but the
  /// clock begins: at most once in 5 s, and where a minute lies between two lists. Else lists do so.
  void read_again();
  /// What came of a list (pods::CriPods::publish) that was asked for at `asked`, by this or by somebody else who goes
  /// by it: from then on all know the same pods.
  void take_list(const Result<void>& result, core::Instant asked);
  /// Lists the pods now, for a pass that waits: another one begins with the list, or when its time is over.
  void list_for_pass();
  /// A container is about to start, for which somebody waits: has the pods listed again in 25 ms, where the runtime
  /// does not tell of starts by itself.
  void await_start();
  /// Whether there are cgroups among the pods' that are no pod's by their names.
  [[nodiscard]] bool has_strays() const { return !parts_.unlisted.strays().empty(); }
  /// Of these, as far as no list gives them to a pod: bytes that the largest uses.
  [[nodiscard]] std::int64_t largest_stray() const;
  /// Whether a pass waits for a list that is asked for.
  [[nodiscard]] ListingFirst& listing_first() { return listing_first_; }

 private:
  boost::asio::awaitable<void> list_again_and_again();
  boost::asio::awaitable<void> list();
  boost::asio::awaitable<void> open_cgroups_of(const std::vector<pods::RuntimePodPtr>& pods);
  boost::asio::awaitable<void> wait_until_due();
  void due(core::Instant time);
  void await_event();
  [[nodiscard]] core::Duration until_next_list();
  boost::asio::awaitable<void> end_wait_for_list();
  void specs_changed() override;
  void volumes_changed() override { publish(); }
  void spec_source_degraded(pods::SpecOrigin origin, const Error& error) override;
  void spec_unreadable(pods::SpecOrigin origin, const Error& error) override;
  [[nodiscard]] bool contains(const pods::NamedUid& named) const override;
  [[nodiscard]] bool goes(const pods::NamedUid& named) const override { return parts_.evictions.knows(named); }
  void look_again_at_unlisted();
  void find_returned(core::Instant asked);
  void find_returned_unlisted();
  void returned(const evict::EvictionRecord& record);
  void publish();
  void announce();
  boost::asio::awaitable<void> make_ready();
  void name_running();
  void follow_cgroups();
  [[nodiscard]] std::set<std::string, std::less<>> add_unlisted(core::PodList& pods) const;

  boost::asio::any_io_executor reactor_;
  core::Duration refresh_interval_;
  Parts parts_;
  ListingFirst listing_first_;
  core::PodListPtr pods_ = std::make_shared<core::PodList>();
  core::PodListPtr completed_;  // what of them is the runtime's, with the specs
  std::set<std::string, std::less<>> inferred_;
  bool is_provisional_ = false;  // what is read of them can change although the list does not
  std::map<std::string, pods::RuntimePodPtr, std::less<>> running_;  // by uid, what find() answers
  std::vector<PodListener*> listeners_;
  std::vector<PodListener*> later_listeners_;
  boost::asio::steady_timer timer_;
  core::Instant due_ = core::Instant::max();  // of the next list, unless one is under way
  ListPace pace_;
  core::Instant read_again_;       // when what pods hold was
  core::Instant unsettled_until_;  // a cgroup has come of which the runtime has yet to tell
  int refreshes_due_ = 0;          // how many quick refreshes are left until things have settled
  bool had_event_ = false;         // the runtime told of something since the last list began
  bool missed_event_ = false;      // a list had a pod that the runtime should have told of
  std::string error_;              // of the last list
  bool will_make_ready_ = false;
  bool listed_ = false;
  bool stopping_ = false;
};

}  // namespace evictd::agent
