#pragma once
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "evictctl/table.hpp"
#include "evictctl/text.hpp"
#include "evictd.pb.h"

// What the agent answers, for people.

namespace evictd::ctl {

/// "default/web", the namespace and the name. Not made printable.
[[nodiscard]] inline std::string key_of(const v1::PodReference& pod) { return pod.namespace_() + "/" + pod.name(); }

/// The node's status, times as they are seen from `now`.
void print_status(std::ostream& out, const v1::NodeStatus& status, const TableLook& look, TimePoint now);

/// The pods in the order in which they would go.
void print_ranking(std::ostream& out, const v1::RankPodsResponse& ranking, const TableLook& look);
/// For each pod: its place as people count them ("1", "2", …, and "-" for those that never go), pod, QoS class,
/// priority, usage, request, uid and reason. Who goes first stands out, who never goes does not.
[[nodiscard]] std::vector<std::vector<Cell>> ranking_rows(const v1::RankPodsResponse& ranking);

/// The thresholds, and what is to be said of them.
void print_thresholds(std::ostream& out, const v1::ThresholdSet& set, const TableLook& look);
/// What a change did, or would do (`only_asked`).
void print_update(std::ostream& out, const v1::UpdateThresholdsResponse& response, bool only_asked,
                  const TableLook& look);
/// A suggestion with its arithmetic.
void print_suggestion(std::ostream& out, const v1::SuggestThresholdsResponse& response, const TableLook& look);

/// Pod by pod, what each handler says, and what the pod would be given.
void print_admission(std::ostream& out, const v1::AdmitBatchResponse& reply, const TableLook& look);

/// Events for people, one row each as they come. A line names the day wherever it changes, and at the beginning unless
/// it is today.
class EventTable {
 public:
  EventTable(std::ostream& out, const TableLook& look, TimePoint now);

  void print(const v1::Event& event);

 private:
  std::ostream& out_;
  TableLook look_;
  std::string day_;
  bool begun_ = false;
};

/// What happened and how long after the wake-up: "default/bloat: stopped app [memcg +2.1 ms]".
[[nodiscard]] std::string event_text(const v1::Event& event);
/// "EVICTION_INTENDED", or the number of one that this client is too old to know.
[[nodiscard]] std::string kind_text(v1::Event::Kind kind);
/// In which its kind is shown.
[[nodiscard]] Style event_style(v1::Event::Kind kind);

/// One eviction.
struct Story {
  std::uint64_t id = 0;
  std::vector<v1::Event> events{};         ///< all that is remembered of it, in their order; never empty
  std::optional<TimePoint> short_since{};  ///< the last crossing of the signal's thresholds before it
};

/// In words: what was short, since when, why this pod and not the next, what would have saved it, what it held, what
/// came back and what did not. What is not known is left out.
void print_story(std::ostream& out, const Story& story, const TableLook& look);

}  // namespace evictd::ctl
