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
  std::uint64_t deletions = 0;
  std::uint64_t events = 0;
  std::uint64_t gone = 0;     ///< not needed any more: the object had been deleted
  std::uint64_t dropped = 0;  ///< never written: refused, too many, or another pod has the name now
};

/// The reports about pods, and the Events about the node, that wait to be written. Pure: ReportQueue drives it.
///
/// Those about one pod go in order (status, deletion, Event), those about different pods in the order in which they
/// came, except that one which is refused for now does not hold up other pods', and a forbidden one holds up nothing.
class PodReports {
 public:
  PodReports(const ReportOptions& options, Tell tell) : options_{options}, tell_{std::move(tell)} {}

  /// False: the pod is known, cannot be an API object, or nothing is to be reported.
  bool evicted(Eviction eviction, core::Instant now);
  /// At most one Event a minute for each resource: those in between are counted by the next.
  void threshold_met(core::Resource resource, core::Instant now, WallTime time);

  /// The next request that is due. Exactly one of answered() and postponed() must follow.
  [[nodiscard]] std::optional<Request> next(core::Instant now);
  /// The server answered `judgement` (not Busy, not Unauthorized).
  void answered(const Judgement& judgement, const std::string& body, core::Instant now);
  /// There was no answer, or none that is about the report. `at_fault`: it may be the report's fault, others go first.
  void postponed(bool at_fault, core::Instant now);

  /// When the next one is due; absent: none waits.
  [[nodiscard]] std::optional<core::Instant> due() const;
  [[nodiscard]] std::size_t waiting() const { return entries_.size(); }
  [[nodiscard]] std::optional<core::Instant> oldest() const;
  [[nodiscard]] const PodReportCounts& counts() const { return counts_; }

 private:
  enum class Step : std::uint8_t { Status, Deletion, PodEvent, NodeEvent };
  /// A pod's reports share what is found out about it.
  struct Case {
    Eviction eviction;
    std::string api_uid;
    bool look_first = false;   // which uid the API object has must be read
    bool another_pod = false;  // has the name now
  };
  struct Entry {
    std::uint64_t number = 0;
    Step step = Step::Status;
    std::shared_ptr<Case> pod{};  // none: about the node
    ThresholdMet met{};
    core::Instant since;
    core::Instant not_before{};
    int failures = 0;
    bool forbidden = false;
  };
  struct Recent {
    std::optional<core::Instant> last;
    std::optional<ThresholdMet> suppressed;
  };

  void add(Entry entry);
  bool make_room(Step step);
  bool remember(const std::string& uid);
  [[nodiscard]] Request request_for(const Entry& entry) const;
  [[nodiscard]] bool looks_first(const Entry& entry) const;
  /// The entries that no earlier one about the same pod holds up.
  template <class Visit>
  void visit_free(Visit visit) const;
  void looked(Entry& entry, const Judgement& judgement, const std::string& body, core::Instant now);
  void finish(const Entry& entry);
  void drop(const Entry& entry, const std::string& why);
  void another_pod(const Entry& entry);
  void forbid(Entry& entry, std::string_view what, const Judgement& judgement, core::Instant now);
  void remove(std::uint64_t number);
  [[nodiscard]] static std::string_view what(Step step);

  const ReportOptions& options_;
  Tell tell_;
  std::deque<Entry> entries_;
  std::uint64_t last_number_ = 0;
  std::uint64_t in_flight_ = 0;  // its number; 0: none
  bool looking_ = false;         // what is in flight is a look at the pod
  std::set<std::string, std::less<>> known_;
  std::deque<std::string> known_order_;
  std::map<core::Resource, Recent> recent_;
  std::set<std::string, std::less<>> forbidden_told_;
  bool overflow_told_ = false;
  PodReportCounts counts_;
};

}  // namespace evictd::kube
