#pragma once
#include <cstddef>
#include <ostream>

#include "evictd.pb.h"

namespace evictd::ctl {

/// The thresholds, and what is to be said of them, for people. Lines of at most `width` columns.
void print_thresholds(std::ostream& out, const v1::ThresholdSet& set, std::size_t width);

/// What a change did, or would do (`only_asked`).
void print_update(std::ostream& out, const v1::UpdateThresholdsResponse& response, bool only_asked, std::size_t width);

/// A suggestion with its arithmetic.
void print_suggestion(std::ostream& out, const v1::SuggestThresholdsResponse& response, std::size_t width);

}  // namespace evictd::ctl
