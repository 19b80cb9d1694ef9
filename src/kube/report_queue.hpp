#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pressure.hpp"
#include "core/signal.hpp"
#include "kube/message.hpp"
#include "kube/node_report.hpp"
#include "kube/pod_objects.hpp"
#include "kube/pod_reports.hpp"
#include "kube/report_options.hpp"
#include "kube/retry_delay.hpp"
#include "kube/wall_time.hpp"

namespace evictd::kube {

/// How the reports stand, for GetNodeStatus.
struct ReportStatus {
  std::size_t waiting = 0;  ///< reports that the API server has not got yet; the node's state counts as one
  std::optional<core::Instant> oldest{};        ///< since when the oldest of those about pods and events waits
  std::optional<core::Instant> last_success{};  ///< a refusal is none
  std::optional<core::Instant> last_failure{};
  std::string last_error{};  ///< empty: nothing failed yet
  PodReportCounts written{};
  std::uint64_t node_updates = 0;
};

/// Everything evictd tells the API server, one request at a time: the node's state first (a replacement must not be
/// scheduled here again), then evictions and Events in their order; where the server fails at a request about the node
/// one of the others comes first: it may fail at nothing else.
///
/// Pure: it has no clock and does no I/O, `send what next() says and tell answered() what came of it`. A request whose
/// answer is lost is sent again; each is made so that this changes nothing (a patch with the same bytes and the pod's
/// uid, a deletion with the uid, an Event with a name of its own). The API server being away, slow (429 and 503 with
/// Retry-After) or not accepting the token pauses everything, by exponential back-off with jitter; a report that is
/// refused by itself waits by itself. What waits is bounded, in memory only: it does not outlive evictd.
class ReportQueue {
 public:
  ReportQueue(ReportOptions options, Random random, Tell tell);
  ReportQueue(const ReportQueue&) = delete;
  ReportQueue& operator=(const ReportQueue&) = delete;

  /// The pod's containers are dead. Not before: "Failed" would be a lie while they run, and a controller that believed
  /// it would start a second one of something that must be one. False: it cannot be an API object, or nothing is
  /// reported about pods. A pod that is evicted again is reported again, by its uid.
  bool evicted(Eviction eviction, core::Instant now);
  /// See PodReports::returned.
  void returned(std::string_view uid, core::Instant now) { pods_.returned(uid, now); }
  /// See PodReports::seen.
  bool seen(std::string_view uid, std::string_view phase, std::string_view reason, core::Instant now) {
    return pods_.seen(uid, phase, reason, now);
  }
  /// A pass has taken a threshold up, and has done what is to be done at once.
  void threshold_met(std::string_view resource, core::Instant now, WallTime time);
  /// The node's pressure conditions, after the transition period.
  void node_conditions(const core::NodeConditions& conditions, core::Instant now, WallTime time);
  /// Whether the machine goes down: an Event on the node, and its condition Ready.
  void node_shutdown(const NodeShutdown& shutdown, core::Instant now, WallTime time);

  /// The next request, if one is due and none is under way. answered() must follow.
  [[nodiscard]] std::optional<Request> next(core::Instant now, WallTime time);
  /// What came of it: an answer of the server's, or why there is none.
  void answered(const Result<Response>& answer, core::Instant now);

  /// When next() may have something; absent: not before something new is told, or answered() is called.
  [[nodiscard]] std::optional<core::Instant> due() const;
  /// Reports about pods, and Events about the node, that are still to be sent.
  [[nodiscard]] std::size_t waiting() const { return pods_.waiting(); }
  [[nodiscard]] ReportStatus status() const;

 private:
  enum class Sender : std::uint8_t { Nobody, Node, Pods };

  void failed(const std::string& why, std::optional<core::Duration> retry_after, bool at_fault, core::Instant now);
  void heard(core::Instant now);

  ReportOptions options_;
  Tell tell_;
  NodeReport node_;
  PodReports pods_;
  RetryDelay retry_;
  Sender in_flight_ = Sender::Nobody;
  bool pods_first_ = false;  // the last request was about the node, and the server failed at it
  core::Instant paused_until_{};
  bool away_ = false;  // told that the server is
  std::optional<core::Instant> last_success_;
  std::optional<core::Instant> last_failure_;
  std::string last_error_;
};

}  // namespace evictd::kube
