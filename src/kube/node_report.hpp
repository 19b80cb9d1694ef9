#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/duration.hpp"
#include "core/pressure.hpp"
#include "core/signal.hpp"
#include "kube/judgement.hpp"
#include "kube/message.hpp"
#include "kube/node_objects.hpp"
#include "kube/report_options.hpp"
#include "kube/retry_delay.hpp"
#include "kube/wall_time.hpp"

namespace evictd::kube {

/// Keeps the Node object's pressure conditions and taints as they should be, and says in Ready that it shuts down. Only
/// the last state counts: what changed while the API server was away is written once. Pure: ReportQueue drives it.
///
/// With NodeConditionMode::Conditions: PATCH nodes/NAME/status at each change and at each heartbeat, then the taints if
/// they are not there yet. The conditions come first: the node lifecycle controller takes away a taint that no
/// condition backs, and adds the taint itself once one does. With NodeConditionMode::Taints: the taints alone. There
/// that controller takes a taint away again unless the kubelet's condition agrees; it is looked after at each heartbeat
/// while there is pressure, no more often, so that the two do not fight.
class NodeReport {
 public:
  NodeReport(const ReportOptions& options, Tell tell, Random random)
      : options_{options}, tell_{std::move(tell)}, random_{std::move(random)} {}

  /// What holds now. Nothing is written before the first call.
  void set(const core::NodeConditions& conditions, core::Instant now, WallTime time);
  /// Whether the node shuts down, since `time`: told by the condition Ready together with the others, where these are
  /// written. Ready is left alone before the first call.
  void set_shutdown(bool pending, WallTime time);

  /// The next request that is due. Exactly one of answered() and postponed() must follow.
  [[nodiscard]] std::optional<Request> next(core::Instant now, WallTime time);
  /// The server answered `judgement` (not Busy, not Unauthorized).
  void answered(const Judgement& judgement, const std::string& body, core::Instant now);
  /// There was no answer, or none that is about the report. `at_fault`: it may be the report's fault, which stands back
  /// then; the other half of the node's state goes first.
  void postponed(bool at_fault, core::Instant now);
  /// The server fails at others as well: nothing stands back any more.
  void forget_failures();

  /// When the next one is due; absent: at the next change.
  [[nodiscard]] std::optional<core::Instant> due() const;
  /// The server does not know the latest state yet.
  [[nodiscard]] bool waits() const { return told_once_ && (conditions_dirty_ || taints_dirty_); }
  /// How often the node was written to.
  [[nodiscard]] std::uint64_t updates() const { return updates_; }

 private:
  enum class Step : std::uint8_t { Read, Conditions, Taints };

  [[nodiscard]] bool writes_conditions() const { return options_.node_conditions == NodeConditionMode::Conditions; }
  [[nodiscard]] bool wants_conditions(core::Instant now) const;
  [[nodiscard]] bool wants_taints(core::Instant now) const;
  void beat(core::Instant now);
  void expect_heartbeat(core::Instant now);
  void see(const std::string& body, core::Instant now);
  void conditions_written(const std::string& body, core::Instant now);
  void taints_written(core::Instant now);
  void refused(Step step, const Judgement& judgement, core::Instant now);
  void wait(Step step, core::Instant until);
  void succeeded(Step step);
  void tell_once(std::string_view what, const std::string& line);
  void forget(std::string_view what);
  [[nodiscard]] static std::string_view right_for(Step step);

  const ReportOptions& options_;
  Tell tell_;
  Random random_;
  core::NodeConditions conditions_;
  std::map<core::NodeCondition, WallTime> since_;
  std::optional<ShutdownState> shutdown_;
  bool told_once_ = false;
  std::uint64_t version_ = 0;       // of conditions_ and shutdown_
  std::uint64_t sent_version_ = 0;  // of what is in flight
  bool conditions_dirty_ = false;
  bool taints_dirty_ = false;
  std::optional<NodeView> view_;
  std::optional<Step> in_flight_;
  int conflicts_ = 0;  // without a success in between
  core::Instant not_before_{};
  std::map<Step, int> refusals_;  // in a row
  std::map<Step, int> failures_;  // likewise, of the server
  bool taints_first_ = false;     // it failed at the conditions last
  core::Instant conditions_not_before_{};
  core::Instant taints_not_before_{};
  std::optional<core::Instant> heartbeat_;
  std::set<std::string, std::less<>> told_;
  std::uint64_t updates_ = 0;
};

}  // namespace evictd::kube
