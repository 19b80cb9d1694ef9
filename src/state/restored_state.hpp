#pragma once
#include <cstdint>
#include <optional>

#include "core/duration.hpp"
#include "core/synchronizer.hpp"
#include "core/threshold_overlay.hpp"
#include "evict/eviction_record.hpp"
#include "state/state_writer.hpp"

namespace evictd::state {

// What an evictd before this one has kept (proto/evictd/state/v1/state.proto; state/state_writer.hpp). What a message
// does not make sense of is left out: a snapshot is of the same boot and version, and its checksum was right, so no
// warning is given.

[[nodiscard]] core::Synchronizer::State restored(const v1::Synchronizer& kept);
[[nodiscard]] core::ThresholdOverlay restored(const v1::Overlay& kept);
/// Absent: the message names no pod or no cause.
[[nodiscard]] std::optional<evict::EvictionRecord> restored(const v1::Eviction& kept);
[[nodiscard]] EventMark restored(const v1::EventMark& kept);
[[nodiscard]] constexpr core::Instant restored(std::int64_t time) { return core::Instant{core::Duration{time}}; }

}  // namespace evictd::state
