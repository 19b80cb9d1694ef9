#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/action.hpp"
#include "core/back_off.hpp"
#include "core/duration.hpp"
#include "core/eligibility.hpp"
#include "core/event.hpp"
#include "core/eviction.hpp"
#include "core/eviction_settings.hpp"
#include "core/filesystem_layout.hpp"
#include "core/in_flight.hpp"
#include "core/observation.hpp"
#include "core/pass.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"
#include "core/ranked_pod.hpp"
#include "core/rate_limit.hpp"
#include "core/signal.hpp"
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
  bool acts = true;  ///< false: what is decided is only reported (ActingChanged)
};

/// A pod's place in the ranking, and what puts it there beside its numbers.
struct PlacedPod {
  RankedPod ranked;
  bool backing_off = false;  ///< its controller has just lost a pod: it goes behind its equals
  bool stuck = false;        ///< an earlier eviction of it timed out: it goes last
};

/// The eviction policy: what holds from one pass to the next. It is told what became known, and begins the passes. Like
/// these it does no I/O and has no clock. (kubelet: managerImpl; kubelet-spec sections 3 to 8)
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
    bool layout_known = false;         ///< false: no disk decides anything before LayoutDetected tells
    bool containerfs_derived = false;  ///< containerfs has thresholds by that layout

    friend bool operator==(const State&, const State&) = default;
  };
  [[nodiscard]] State state() const;
  /// Goes on where another one was, before the first pass and event. What belongs to thresholds that are no longer in
  /// force is forgotten, and so is what was short more than five minutes before `now`: it may have been over meanwhile.
  /// Its times are of the same clock.
  void restore(State state, Instant now);

  /// Takes note of something that is no answer to a pass. It gives back when to begin a pass because of it, if that is
  /// another time than before. `now` never goes back.
  [[nodiscard]] std::optional<WakeAt> tell(const Event& event, Instant now);
  /// A pass over the node's counters, read fresh; `releasing` was measured right before them. The pass refers to this,
  /// which stays where it is until the pass is over. Older passes are dropped, but for one that waits for a disk.
  [[nodiscard]] Pass begin(const Observations& observations, std::vector<Releasing> releasing = {});

  [[nodiscard]] const NodeConditions& conditions() const { return context_.pressure.conditions(); }
  /// Whether memory is short, and nobody may be evicted for it by now.
  [[nodiscard]] bool nobody_goes() const { return context_.left_short && is_memory(context_.left_short->signal); }
  /// Whether it was told where images and layers lie, or had been before a restart. Before that no disk decides
  /// anything.
  [[nodiscard]] bool knows_layout() const { return context_.layout_known; }
  /// Since when the threshold has been met, or held by its minimum reclaim, without a break.
  [[nodiscard]] std::optional<Instant> met_since(const Threshold& threshold) const {
    return context_.pressure.met_since(threshold);
  }
  /// The most that comes back of a disk with a pod that goes for something else, as far as it was measured on the way.
  [[nodiscard]] std::optional<DiskRelease> disk_release(std::string_view uid) const {
    return context_.in_flight.disk_release(uid);
  }
  /// The pods, as it was told of them last. Never null.
  [[nodiscard]] const PodListPtr& pods() const { return context_.pods; }
  /// The thresholds in force, containerfs ones included once they are derived.
  [[nodiscard]] std::span<const Threshold> thresholds() const { return context_.policy.thresholds; }
  /// Who would go for the signal, in their order, if it were short now: the order of evictions, so pods on their way
  /// out are not in it, and critical ones, which never go, stand where they would. `usage[i]` belongs to `pods[i]`.
  /// Nothing comes of asking.
  [[nodiscard]] std::vector<PlacedPod> ranking(Signal signal, const PodList& pods,
                                               std::span<const std::optional<PodUsage>> usage, Instant now) const;
  /// Whether that ranking would have the pod: `excluded` if not.
  [[nodiscard]] Eligibility eligibility(Signal signal, const Pod& pod) const;

 private:
  void on(const PodsChanged& event, Instant now);
  void on(const PodDisplaced& event, Instant now);
  void on(const PodHeld& event, Instant now);
  void on(const CleanupEnded& event, Instant now);
  void on(const PodReturned& event, Instant now);
  void on(const ActingChanged& event, Instant now);
  void on(const PolicyChanged& event, Instant now);
  void on(const LayoutDetected& event, Instant now);
  void thresholds_changed();
  [[nodiscard]] Threshold threshold_of(Signal signal) const;

  /// What only those count in who really went, as it was when decisions were carried out last.
  struct Counted {
    BackOff back_off;
    RateLimit rate_limit;
    PressureTracker::LastObserved last_observed;  // of conditions: these rule admission
  };

  PassContext context_;
  std::optional<Counted> before_reports_;  // while decisions are only reported
};

}  // namespace evictd::core
