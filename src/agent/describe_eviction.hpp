#pragma once
#include <evictd.pb.h>

#include "core/eviction.hpp"
#include "core/wake.hpp"
#include "evict/eviction_record.hpp"

// What the API's events have in common that tell of a shortage or of an eviction: what woke evictd, and when each stage
// was reached so far.
namespace evictd::agent {

[[nodiscard]] v1::Event new_event(v1::Event::Kind kind, const core::Turn& turn);
/// Also which eviction it is, of which pod, and why.
[[nodiscard]] v1::Event new_event(v1::Event::Kind kind, const evict::EvictionRecord& record);

[[nodiscard]] v1::Event describe_crossing(const core::Acted& acted, const core::Turn& turn);

}  // namespace evictd::agent
