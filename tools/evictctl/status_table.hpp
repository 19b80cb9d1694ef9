#pragma once
#include <cstddef>
#include <ostream>

#include "evictctl/text.hpp"
#include "evictd.pb.h"

namespace evictd::ctl {

/// The node's status for people, times as they are seen from `now`.
void print_status(std::ostream& out, const v1::NodeStatus& status, std::size_t width, TimePoint now);

}  // namespace evictd::ctl
