#pragma once
#include <cstddef>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "events/event_log.hpp"
#include "events/segment_writer.hpp"

namespace evictd::events {

struct LoadedEvents {
  std::vector<EventPtr> events{};         ///< with rising numbers
  std::deque<StoredSegment> segments{};   ///< those they came from
  std::vector<std::string> complaints{};  ///< a line for each file that is not as it should be
};

/// The newest `keep` events of the segments in a directory, or some more, but no more than 256 MiB. Segments before
/// those are deleted. A segment that ends in bytes that are no event, as after a crash, is cut there; one that is none,
/// or a newer evictd's, is set aside under another name. Reads files: before the reactor runs.
[[nodiscard]] LoadedEvents load_segments(const std::filesystem::path& directory, std::size_t keep);

}  // namespace evictd::events
