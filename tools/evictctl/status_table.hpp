#pragma once
#include <ostream>

#include "evictctl/table.hpp"
#include "evictctl/text.hpp"
#include "evictd.pb.h"

namespace evictd::ctl {

/// The node's status for people, times as they are seen from `now`.
void print_status(std::ostream& out, const v1::NodeStatus& status, const TableLook& look, TimePoint now);

}  // namespace evictd::ctl
