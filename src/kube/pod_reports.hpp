#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "core/duration.hpp"
#include "core/signal.hpp"
#include "kube/judgement.hpp"
#include "kube/message.hpp"
#include "kube/pod_objects.hpp"
#include "kube/report_options.hpp"
#include "kube/wall_time.hpp"

namespace evictd::kube {

/// What was written since the start.
struct PodReportCounts {
  std::uint64_t statuses = 0;
  std::uint64_t statuses_again = 0;  ///< of these, how many because something else had been written over them
  std::uint64_t deletions = 0;
  std::uint64_t events = 0;
  std::uint64_t gone = 0;     ///< not needed any more: the object had been deleted, or the pod ran again
  std::uint64_t dropped = 0;  ///< never written: refused, too many, or another pod has the name now
};

/// The reports about pods, and the Events about the node, that wait to be written. Pure: ReportQueue drives it.
///
/// Those about one pod go in order (status, deletion, Event), those about different pods in the order in which they
/// came, except that one which is refused for now does not hold up other pods', and a forbidden one holds up nothing.
///
/// A kubelet that has not noticed the pod's end yet may write its own status over evictd's: it does so when it sees a
/// change, and every 10 s (kubelet: status manager, syncBatch). So once its status was written a pod is read a second
/// and eleven seconds later, unless the watch of the API server shows what was written; and at once when the watch
/// shows something else. If the pod is neither as it was written nor gone, the status is written again: at once, then
/// after growing pauses, `most_writes` times in all for each eviction. After that an error is told and the pod is left
/// to its kubelet: should it run again, it is evicted again when it has to be, and reported again. (With
/// ReportMode::Delete the object is deleted, and nothing is read.)
class PodReports {
 public:
  PodReports(const ReportOptions& options, Tell tell) : options_{options}, tell_{std::move(tell)} {}

  static constexpr int most_writes = 6;

  /// False: the pod cannot be an API object, or nothing is to be reported. What waits of an earlier eviction of the
  /// same pod is told as this one.
  bool evicted(Eviction eviction, core::Instant now);
  /// The pod runs again: it is not deleted any more, and what had to wait of its status, because the server was away or
  /// forbade it, is not written. Its Event is, and so is a status that was written and that its kubelet writes over.
  void returned(std::string_view uid, core::Instant now);
  /// What the API server's watch shows of a pod now. Of one that was not evicted lately, or is given up, it is nothing.
  /// True: there may be something to do at once.
  bool seen(std::string_view uid, std::string_view phase, std::string_view reason, core::Instant now);
  /// At most one Event a minute for each resource: those in between are counted by the next.
  void threshold_met(std::string_view resource, core::Instant now, WallTime time);

  /// The machine's shutdown began, or was called off: an Event on the node, if it has a beginning.
  void node_shutdown(const NodeShutdown& shutdown, core::Instant now, WallTime time);

  /// The next request that is due. Exactly one of answered() and postponed() must follow.
  [[nodiscard]] std::optional<Request> next(core::Instant now);
  /// The server answered `judgement` (not Busy, not Unauthorized).
  void answered(const Judgement& judgement, const std::string& body, core::Instant now);
  /// There was no answer, or none that is about the report. `at_fault`: it may be the report's fault, others go first.
  void postponed(bool at_fault, core::Instant now);

  /// When the next one is due; absent: none waits.
  [[nodiscard]] std::optional<core::Instant> due() const;
  /// Reports that are still to be written. What is only to be read does not count.
  [[nodiscard]] std::size_t waiting() const;
  [[nodiscard]] std::optional<core::Instant> oldest() const;
  [[nodiscard]] const PodReportCounts& counts() const { return counts_; }

 private:
  enum class Step : std::uint8_t { Status, Deletion, PodEvent, NodeEvent, Check };
  /// A pod's reports share what is found out about it.
  struct Case {
    Eviction eviction;
    std::string api_uid;
    bool look_first = false;   // which uid the API object has must be read
    bool another_pod = false;  // has the name now
    bool given_up = false;     // its status is not written any more: in vain, or the pod runs again
    bool confirmed = false;    // the watch shows it as it was written
    int writes = 0;            // of its status, for this eviction
  };
  using CasePtr = std::shared_ptr<Case>;
  struct ToldShutdown {
    NodeShutdown shutdown;
    WallTime time;
  };
  struct Entry {
    std::uint64_t number = 0;
    Step step = Step::Status;
    CasePtr pod{};                                    // none: about the node
    std::variant<ThresholdMet, ToldShutdown> news{};  // of NodeEvent
    core::Instant since;
    core::Instant not_before{};
    int failures = 0;
    bool forbidden = false;
    bool doubted = false;  // of a check: while it was under way
  };
  struct Recent {
    std::optional<core::Instant> last;
    std::optional<ThresholdMet> suppressed;
  };

  void add(Entry entry);
  bool make_room(Step step);
  CasePtr remember(Eviction eviction);
  [[nodiscard]] bool waits(const CasePtr& pod, Step step) const;
  [[nodiscard]] Request request_for(const Entry& entry) const;
  [[nodiscard]] std::string node_event_for(const Entry& entry) const;
  [[nodiscard]] bool looks_first(const Entry& entry) const;
  /// The entries that no earlier one about the same pod holds up.
  template <class Visit>
  void visit_free(Visit visit) const;
  void looked(Entry& entry, const Judgement& judgement, const std::string& body, core::Instant now);
  void checked(Entry& entry, const Judgement& judgement, const std::string& body, core::Instant now);
  void confirmed(Entry& entry, core::Instant now);
  void write_again(const Entry& entry, const PodObject& found, core::Instant now);
  void look_later(const CasePtr& pod, core::Instant written);
  void check(const CasePtr& pod, core::Instant written, core::Instant when);
  void finish(const Entry& entry, core::Instant now);
  void drop(const Entry& entry, const std::string& why);
  void another_pod(const Entry& entry);
  void forbid(Entry& entry, std::string_view what, const Judgement& judgement, core::Instant now);
  void forbid_looks(const Judgement& judgement, core::Instant now);
  void tell_forbidden(std::string_view what, const Judgement& judgement);
  void remove(std::uint64_t number);
  [[nodiscard]] static std::string_view what(Step step);

  const ReportOptions& options_;
  Tell tell_;
  std::deque<Entry> entries_;
  std::uint64_t last_number_ = 0;
  std::uint64_t in_flight_ = 0;  // its number; 0: none
  bool looking_ = false;         // what is in flight is a look at the pod before a report about it
  std::map<std::string, CasePtr, std::less<>> cases_;  // by uid: pods evicted lately
  std::deque<std::string> cases_order_;
  std::map<std::string_view, Recent> recent_;
  std::set<std::string, std::less<>> forbidden_told_;
  core::Instant looks_from_{};  // no look at a status that was written before: pods may not be read
  int looks_refused_ = 0;       // since one was not
  bool overflow_told_ = false;
  PodReportCounts counts_;
};

}  // namespace evictd::kube
