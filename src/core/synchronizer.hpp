#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/action.hpp"
#include "core/back_off.hpp"
#include "core/duration.hpp"
#include "core/event.hpp"
#include "core/eviction_order.hpp"
#include "core/eviction_settings.hpp"
#include "core/filesystem_layout.hpp"
#include "core/in_flight.hpp"
#include "core/observation.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"
#include "core/rank.hpp"
#include "core/rate_limit.hpp"
#include "core/signal.hpp"
#include "core/standing.hpp"
#include "core/threshold.hpp"
#include "core/usage.hpp"

namespace evictd::core {

struct SynchronizerOptions {
  /// Count what evicted pods have not given back yet. The kubelet waits for the cleanup instead; simulations follow it.
  bool in_flight_reclaim = true;
  /// For how long after an eviction pods of the same controller go behind their equals (core/back_off.hpp); 0: the
  /// kubelet's way, they do not.
  Duration back_off{};
  /// Pods that may go in a minute because of thresholds; 0: no limit.
  std::size_t max_evictions_per_minute = 0;
  /// The same within the minute after the start, whose thresholds are not those of the last run; 0: no limit.
  std::size_t evictions_in_first_minute = 0;
};

/// A pod's place in the ranking, and what puts it there beside its numbers.
struct PlacedPod {
  RankedPod ranked;
  bool backing_off = false;  ///< its controller has just lost a pod: it goes behind its equals
  bool stuck = false;        ///< an earlier eviction of it timed out: it goes last
};

/// The eviction policy as a state machine: it is told what became known and says what to do next. It does no I/O and
/// has no clock, so the agent, `evictd simulate` and the tests drive the very same code. (kubelet:
/// managerImpl.synchronize; kubelet-spec sections 3 to 8)
class Synchronizer {
 public:
  explicit Synchronizer(EvictionPolicy policy, SynchronizerOptions options = {});

  /// What is known of the node's past: without it, grace periods, hysteresis, back-offs and limits would begin anew
  /// with each restart, and what is on its way back would be evicted for again.
  struct State {
    PressureTracker::State pressure{};
    std::vector<InFlight::Entry> in_flight{};
    BackOff::State back_off{};
    RateLimit::State rate_limit{};
    FilesystemLayout layout{};
    bool containerfs_derived = false;  ///< containerfs has thresholds by that layout

    friend bool operator==(const State&, const State&) = default;
  };
  [[nodiscard]] State state() const;
  /// Goes on where another one was, before the first step. What belongs to thresholds that are no longer in force is
  /// forgotten. Its times are of the same clock.
  void restore(State state);

  /// `now` never goes back.
  [[nodiscard]] Actions step(const Event& event, Instant now);

  [[nodiscard]] const NodeConditions& conditions() const { return pressure_.conditions(); }
  /// Since when the threshold has been met, or held by its minimum reclaim, without a break.
  [[nodiscard]] std::optional<Instant> met_since(const Threshold& threshold) const {
    return pressure_.met_since(threshold);
  }
  /// The thresholds in force, containerfs ones included once they are derived.
  [[nodiscard]] std::span<const Threshold> thresholds() const { return policy_.thresholds; }
  /// Who would go for the signal, in their order, if it were short now: the order of evictions, so pods on their way
  /// out are not in it, and critical ones, which never go, stand where they would. `usage[i]` belongs to `pods[i]`.
  /// Nothing comes of asking.
  [[nodiscard]] std::vector<PlacedPod> ranking(Signal signal, const PodList& pods,
                                               std::span<const std::optional<PodUsage>> usage, Instant now) const;
  /// Whether that ranking would have the pod: `excluded` if not.
  [[nodiscard]] Standing standing(Signal signal, const Pod& pod) const;

 private:
  /// A pass that waits for an answer.
  struct Selection {
    enum class Stage : std::uint8_t { limits, reclaim, measure };

    RequestId request = 0;
    Stage stage = Stage::limits;
    std::vector<ActingThreshold> acting;
    Observations observations;
    PodListPtr pods;
    std::optional<Acted> chosen{};
  };

  void on(const NodeObserved& event, Instant now);
  void on(const PodsChanged& event, Instant now);
  void on(const PodsMeasured& event, Instant now);
  void on(const NodeReclaimed& event, Instant now);
  void on(const PodDisplaced& event, Instant now);
  void on(const CleanupEnded& event, Instant now);
  void on(const PodReturned& event, Instant now);
  void on(const PolicyChanged& event, Instant now);
  void on(const LayoutDetected& event, Instant now);

  void derive_containerfs();
  void ask_to_wake(Instant now);
  void look_at_new_pods(Instant now);
  void report_pressure(const PressureTracker::Pass& pass, const Observations& observations, Instant now);
  void arm(const Observations& observations);

  /// The steps of a pass from the local-storage limits on; each either ends it, asks for something, or goes on to the
  /// next.
  void check_limits(Selection selection, Instant now);
  void choose_threshold(Selection selection, Instant now);
  void reclaim_node(Selection selection, Instant now);
  void measure_pods(Selection selection, Instant now);
  void evict_violators(const Selection& selection, std::span<const std::optional<PodUsage>> usage, Instant now);
  void evict_first(const Selection& selection, const PodsMeasured& measured_pods, Instant now);

  [[nodiscard]] bool is_limited(const Acted& acted, Instant now);
  [[nodiscard]] bool still_acts(const Selection& selection, const std::optional<Observations>& fresh, Instant now);
  [[nodiscard]] bool waits_for_more(const RankedPod& victim, const Acted& acted) const;
  [[nodiscard]] std::optional<Acted> first_short(const Selection& selection) const;
  [[nodiscard]] Threshold threshold_of(Signal signal) const;
  [[nodiscard]] EvictionOrder order() const {
    return EvictionOrder{{.in_flight = in_flight_, .back_off = back_off_, .unlisted = unlisted_, .layout = layout_}};
  }
  [[nodiscard]] bool waits_for_disk() const;
  [[nodiscard]] Duration grace_period(const Threshold& threshold, const Pod& pod) const;
  [[nodiscard]] std::optional<Selection> take(RequestId request, Selection::Stage stage);
  RequestId wait(Selection selection, Selection::Stage stage);
  void evict(Evict evict, Instant now);

  EvictionPolicy policy_;
  SynchronizerOptions options_;
  PressureTracker pressure_;
  InFlight in_flight_;
  BackOff back_off_;
  RateLimit rate_limit_;
  std::optional<Instant> limited_until_;  // of this pass
  PodListPtr pods_ = std::make_shared<const PodList>();
  PodListPtr without_victim_;  // the pods of which the last pass found none that may go; null: it had no need to
  std::set<std::string, std::less<>> unlisted_;  // of those, by uid
  FilesystemLayout layout_;
  bool containerfs_derived_ = false;
  std::vector<Level> armed_;
  std::optional<Instant> wake_at_;
  std::vector<Selection> waiting_;
  RequestId last_request_ = 0;
  Actions actions_;
};

}  // namespace evictd::core
