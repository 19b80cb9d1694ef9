#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "evictctl/table.hpp"
#include "evictd.pb.h"

namespace evictd::ctl {

/// The pods in the order in which they would go.
void print_ranking(std::ostream& out, const v1::RankPodsResponse& ranking, const TableLook& look);

/// The places of the pods as people count them: "1", "2", …, and "-" for those that never go.
[[nodiscard]] std::vector<std::string> places(const v1::RankPodsResponse& ranking);
/// "312Mi", "<=312Mi" where that is a bound, "42". `unit`: RankPodsResponse.unit.
[[nodiscard]] std::string usage_text(const std::string& unit, const v1::RankedPod& pod);
/// "-" where nothing was asked for, or cannot be.
[[nodiscard]] std::string request_text(const v1::RankedPod& pod);

}  // namespace evictd::ctl
