#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/action.hpp"
#include "core/answer.hpp"
#include "core/back_off.hpp"
#include "core/duration.hpp"
#include "core/event.hpp"
#include "core/eviction_order.hpp"
#include "core/eviction_settings.hpp"
#include "core/filesystem_layout.hpp"
#include "core/in_flight.hpp"
#include "core/observation.hpp"
#include "core/passes_under_way.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"
#include "core/ranked_pod.hpp"
#include "core/rate_limit.hpp"
#include "core/usage.hpp"

namespace evictd::core {

/// What passes go by, and what one leaves for the next. The Synchronizer owns it, and changes it between passes as it
/// is told; a Pass works on it.
struct PassContext {
  EvictionPolicy policy;
  PressureTracker pressure{};
  InFlight in_flight{};
  BackOff back_off;
  RateLimit rate_limit;
  std::size_t evictions_in_first_minute = 0;  ///< the cap of the minute that is still to begin; 0: none

  FilesystemLayout layout{};
  bool layout_known = false;         ///< false: no disk decides anything; conditions are told all the same
  bool containerfs_derived = false;  ///< containerfs has thresholds by that layout

  PodListPtr pods = std::make_shared<const PodList>();  ///< never null
  std::set<std::string, std::less<>> unlisted{};        ///< of those, by uid
  PodListPtr without_victim{};  ///< the pods of which the last pass found none that may go; null: it had no need to
  std::optional<Threshold> left_short{};  ///< for which nobody went, for want of a pod or by the rate limit

  PassesUnderWay passes{};
  std::optional<Instant> limited_until{};  ///< by the rate limit, in the last pass
  std::optional<Instant> wake_at{};        ///< as asked for last
  std::vector<Level> armed{};              ///< as asked for last

  /// Called with whatever comes first after the start.
  void begin_first_minute(Instant now);
  /// To be called at the beginning of the first pass, and once it has seen what is met: what is derived and was not
  /// given acts from the second pass on (kubelet-spec section 2).
  void replace_given_containerfs();
  void derive_containerfs();
  [[nodiscard]] EvictionOrder order() const;

  /// The time at which something changes without any event, if it is another than before.
  [[nodiscard]] std::optional<WakeAt> wake_for_change(Instant now);
  /// A node that is short of what no pod could go for has another pass once there are other pods, or more is known of
  /// them, because nothing else may begin one for minutes.
  [[nodiscard]] std::optional<WakeAt> wake_for_new_pods(Instant now);
  /// The levels of all thresholds that have an observation, if they are others than before.
  [[nodiscard]] std::optional<ArmLevels> levels_to_arm(const Observations& observations);
};

/// One look at the node and all that follows from it, as an algorithm that can be resumed: it says what to do next, and
/// goes on with what came of it. It does no I/O, has no clock and is no coroutine, so the agent, `evictd simulate` and
/// the tests drive the very same code:
///
///     for (Answer answer; const auto action = pass.resume(answer, now());) answer = perform(*action);
///
/// A driver that cannot answer at once keeps the pass and resumes it later; newer passes may be driven meanwhile.
class Pass {
 public:
  /// A pass over the node's counters, read fresh, and what was on its way back when they were read. Older passes are
  /// dropped, but for one that waits for a disk. `context` outlives it.
  Pass(PassContext& context, const Observations& observations, std::vector<Releasing> releasing);
  Pass(Pass&&) = default;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  Pass& operator=(Pass&&) = delete;
  ~Pass() = default;

  /// What to do next; absent: the pass is over. `answer` is what came of the action before. A pass ends at once if its
  /// question has no answer of the right kind, or if it was dropped while it waited for one. `now` never goes back.
  [[nodiscard]] std::optional<Action> resume(const Answer& answer, Instant now);
  /// What the pass takes up: the first threshold that acts and that nothing on its way back satisfies. Absent until it
  /// is found, and where there is none.
  [[nodiscard]] const std::optional<Acted>& chosen() const { return chosen_; }

 private:
  /// Where the pass goes on. Each but the first and the last waits for an answer.
  enum class Stage : std::uint8_t { observe, limits, reclaim, measure, over };

  void go_on(const Answer& answer, Instant now);
  [[nodiscard]] bool is_answered_by(const Answer& answer) const;
  void ask(Stage stage, Action question);
  void end();

  void report_pressure(Instant now);
  void forget_left_short(Instant now);
  void leave_short(PodListPtr without_victim);
  [[nodiscard]] bool has_limits() const;
  [[nodiscard]] bool evict_violators(std::span<const std::optional<PodUsage>> usage, Instant now);
  [[nodiscard]] std::optional<Acted> first_short() const;
  [[nodiscard]] bool is_well(const Observations& observations) const;
  [[nodiscard]] bool is_limited(Instant now);
  [[nodiscard]] bool may_hurry() const;
  [[nodiscard]] ReadPodUsage usage_to_rank_by() const;
  [[nodiscard]] bool is_still_short(const PodsMeasured& measured, Instant now);
  void evict_first(const PodsMeasured& measured, Instant now);
  [[nodiscard]] bool waits_for_more(const RankedPod& victim) const;
  void evict(Eviction evict, Instant now);

  void decide(Action action) { decided_.push_back(std::move(action)); }
  template <class Kind>
  void decide(std::optional<Kind> action) {
    if (action) decided_.push_back(*std::move(action));
  }

  PassContext& context_;
  PassesUnderWay::Number number_;
  Observations observations_;
  std::vector<Releasing> releasing_;
  Stage stage_ = Stage::observe;
  std::vector<ActingThreshold> acting_;  // by precedence
  std::optional<Acted> chosen_;          // of those, what a pod may go for
  PodListPtr pods_;                      // that were asked for last
  Actions decided_;
  std::size_t taken_ = 0;  // of those
};

}  // namespace evictd::core
