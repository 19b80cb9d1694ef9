#pragma once
#include <evictd.pb.h>

#include <string>

#include "agent/evidence.hpp"
#include "evict/eviction_record.hpp"

namespace evictd::agent {

/// Whether the pod goes because memory is short, and not for a disk, a limit of its own or others' need.
[[nodiscard]] bool is_for_memory(const evict::EvictionRecord& record);

/// Who held what, why this pod and not the next, and what would have saved it, computed by the rules of the ranking
/// (core::compare): the smallest request with which the next pod would have gone first, if what that one held would
/// have been enough; the limit with which the node would not have been short; the threshold that would not have been
/// met.
[[nodiscard]] v1::Explained explain(const evict::EvictionRecord& record, const Evidence& evidence);
/// The same in one line.
[[nodiscard]] std::string explanation_line(const std::string& pod, const v1::Explained& explained);

}  // namespace evictd::agent
