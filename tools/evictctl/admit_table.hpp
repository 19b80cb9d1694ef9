#pragma once
#include <ostream>

#include "evictctl/table.hpp"
#include "evictd.pb.h"

namespace evictd::ctl {

/// Each pod's verdict for people: the handlers in their order, why it is rejected, who has to go for it, and what its
/// containers are given.
void print_admission(std::ostream& out, const v1::AdmitBatchResponse& reply, const TableLook& look);

}  // namespace evictd::ctl
