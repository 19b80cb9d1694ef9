#pragma once
#include <cstdint>
#include <optional>

#include "agent/eviction_record.hpp"
#include "core/duration.hpp"
#include "core/synchronizer.hpp"
#include "core/threshold_overlay.hpp"

namespace evictd::state::v1 {
class Eviction;
class Overlay;
class Synchronizer;
}  // namespace evictd::state::v1

namespace evictd::agent {

// What is kept over a restart (proto/evictd/state/v1/state.proto), to and fro. What a message does not make sense of is
// left out: a snapshot is of the same boot and version, and its checksum was right, so there is nobody to tell.

[[nodiscard]] state::v1::Synchronizer keep(const core::Synchronizer::State& state);
[[nodiscard]] core::Synchronizer::State restored(const state::v1::Synchronizer& kept);

[[nodiscard]] state::v1::Overlay keep(const core::ThresholdOverlay& overlay);
[[nodiscard]] core::ThresholdOverlay restored(const state::v1::Overlay& kept);

/// Of the pod only what names it and what its report needs; the ranking, which may be long, is not kept.
[[nodiscard]] state::v1::Eviction keep(const EvictionRecord& record);
/// Absent: the message names no pod or no cause.
[[nodiscard]] std::optional<EvictionRecord> restored(const state::v1::Eviction& kept);

[[nodiscard]] constexpr std::int64_t keep(core::Instant time) { return time.time_since_epoch().count(); }
[[nodiscard]] constexpr core::Instant restored(std::int64_t time) { return core::Instant{core::Duration{time}}; }

}  // namespace evictd::agent
