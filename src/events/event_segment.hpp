#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "events/event_log.hpp"

namespace evictd::events {

/// A segment is a file of events with rising numbers: a header, and then for each event its length, its checksum (4
/// bytes each, little end first) and the event itself, as protobuf has it.
inline constexpr std::string_view segment_header = "evictd events 1\n";

/// More than any client takes (gRPC's limit is 4 MiB) is not kept.
inline constexpr std::size_t largest_record = 4 << 20;
/// After so much the next segment begins.
inline constexpr std::size_t full_segment = 8 << 20;

/// "events-00000000000000000017": by the number of its first event, so that names sort as events do.
[[nodiscard]] std::string segment_name(std::uint64_t first);
/// The number in such a name.
[[nodiscard]] std::optional<std::uint64_t> parse_segment_name(std::string_view name);

/// False: it is larger than `largest_record`, and nothing was appended.
[[nodiscard]] bool append_record(std::string& bytes, const v1::Event& event);

struct SegmentContent {
  std::vector<EventPtr> events{};
  std::size_t good_bytes = 0;  ///< up to here all is well; 0: it is no segment that we can read
  std::string damage{};        ///< what is the matter after that, one line; empty: nothing
};

/// What can be read of a segment's bytes. Numbers that do not rise, from `after` on, are damage too. An event that was
/// written as it is and still is none, for protobuf takes no text that is not UTF-8, is left out: a hole.
[[nodiscard]] SegmentContent parse_segment(std::string_view bytes, std::uint64_t after = 0);

}  // namespace evictd::events
