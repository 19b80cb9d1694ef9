#pragma once
#include <ostream>

#include "evictctl/table.hpp"
#include "evictd.pb.h"

namespace evictd::ctl {

/// The thresholds, and what is to be said of them, for people.
void print_thresholds(std::ostream& out, const v1::ThresholdSet& set, const TableLook& look);

/// What a change did, or would do (`only_asked`).
void print_update(std::ostream& out, const v1::UpdateThresholdsResponse& response, bool only_asked,
                  const TableLook& look);

/// A suggestion with its arithmetic.
void print_suggestion(std::ostream& out, const v1::SuggestThresholdsResponse& response, const TableLook& look);

}  // namespace evictd::ctl
