#pragma once
#include <cstdint>
#include <optional>

#include "core/duration.hpp"
#include "core/synchronizer.hpp"
#include "core/threshold_overlay.hpp"
#include "evict/eviction_record.hpp"
#include "state/saved_events.hpp"

namespace evictd::state::v1 {
class Eviction;
class EventMark;
class Overlay;
class Synchronizer;
}  // namespace evictd::state::v1

namespace evictd::state {

// What is kept over a restart (proto/evictd/state/v1/state.proto), to and fro. What a message does not make sense of is
// left out: a snapshot is of the same boot and version, and its checksum was right, so no warning is given.

[[nodiscard]] v1::Synchronizer keep(const core::Synchronizer::State& state);
[[nodiscard]] core::Synchronizer::State restored(const v1::Synchronizer& kept);

[[nodiscard]] v1::Overlay keep(const core::ThresholdOverlay& overlay);
[[nodiscard]] core::ThresholdOverlay restored(const v1::Overlay& kept);

/// How much of an eviction is kept. What finishing it takes is in all of them.
enum class Detail : std::uint8_t {
  Full,   ///< all that its events and reports say; some 700 bytes, at most 50 KiB
  Brief,  ///< without the details of what woke evictd, the message's annotations and containers' names; at most 16 KiB
  Least,  ///< without what woke evictd and how long each stage took, and of the message its beginning; at most 6 KiB
};

/// Of the pod only what names it and what its report needs; the ranking is not kept. Every text and every list has a
/// bound, whatever the pod brought with it. An identity is never shortened, for it would be another one's: where it is
/// longer than any real one, it is left out.
[[nodiscard]] v1::Eviction keep(const evict::EvictionRecord& record, Detail detail = Detail::Full);
/// Absent: the message names no pod or no cause.
[[nodiscard]] std::optional<evict::EvictionRecord> restored(const v1::Eviction& kept);

[[nodiscard]] v1::EventMark keep(const EventMark& mark);
[[nodiscard]] EventMark restored(const v1::EventMark& kept);

[[nodiscard]] constexpr std::int64_t keep(core::Instant time) { return time.time_since_epoch().count(); }
[[nodiscard]] constexpr core::Instant restored(std::int64_t time) { return core::Instant{core::Duration{time}}; }

}  // namespace evictd::state
