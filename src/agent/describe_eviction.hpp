#pragma once
#include <evictd.pb.h>

#include <cstddef>

#include "core/eviction.hpp"
#include "core/wake.hpp"
#include "evict/eviction_record.hpp"

// What is told of a shortage and of an eviction, as the API's events. Each of them tells what woke evictd, and when
// each stage was reached so far.
namespace evictd::agent {

[[nodiscard]] v1::Event new_event(v1::Event::Kind kind, const core::Turn& turn);
/// Also which eviction it is, of which pod, and why.
[[nodiscard]] v1::Event new_event(v1::Event::Kind kind, const evict::EvictionRecord& record);

[[nodiscard]] v1::Event describe_crossing(const core::Acted& acted, const core::Turn& turn);
/// `candidates`: how many were compared, of which the record's ranking may have the first ones only.
[[nodiscard]] v1::Event describe_intent(const evict::EvictionRecord& record, std::size_t candidates, bool dry_run);

}  // namespace evictd::agent
