#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "evictctl/table.hpp"
#include "evictctl/text.hpp"
#include "evictd.pb.h"

// What the agent answers, for people.

namespace evictd::ctl {

/// The node's status, times as they are seen from `now`.
void print_status(std::ostream& out, const v1::NodeStatus& status, const TableLook& look, TimePoint now);

/// The pods in the order in which they would go.
void print_ranking(std::ostream& out, const v1::RankPodsResponse& ranking, const TableLook& look);
/// The places of the pods as people count them: "1", "2", …, and "-" for those that never go.
[[nodiscard]] std::vector<std::string> places(const v1::RankPodsResponse& ranking);
/// Place, pod, QoS class, priority, usage, request, uid and reason. Who goes first stands out, who never goes does not.
/// `place` is one of places().
[[nodiscard]] std::vector<Cell> ranking_cells(const v1::RankPodsResponse& ranking, int index, const std::string& place);

/// The thresholds, and what is to be said of them.
void print_thresholds(std::ostream& out, const v1::ThresholdSet& set, const TableLook& look);
/// What a change did, or would do (`only_asked`).
void print_update(std::ostream& out, const v1::UpdateThresholdsResponse& response, bool only_asked,
                  const TableLook& look);
/// A suggestion with its arithmetic.
void print_suggestion(std::ostream& out, const v1::SuggestThresholdsResponse& response, const TableLook& look);

/// Pod by pod, what each handler says, and what the pod would be given.
void print_admission(std::ostream& out, const v1::AdmitBatchResponse& reply, const TableLook& look);

}  // namespace evictd::ctl
