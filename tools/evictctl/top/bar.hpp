#pragma once
#include <cstddef>

#include "evictctl/paint.hpp"
#include "evictctl/top/screen.hpp"
#include "evictd.pb.h"

namespace evictd::ctl {

/// How much of a signal's capacity is in use, with a mark at each threshold: pods go once the bar reaches one. A hard
/// threshold's mark is whole, a soft one's is broken. Blank where the signal is not measured.
void add_bar(Row& row, const v1::SignalStatus& signal, std::size_t width, Style fill);

}  // namespace evictd::ctl
