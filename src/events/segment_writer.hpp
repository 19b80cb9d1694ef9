#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "events/event_log.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::events {

/// A segment on disk.
struct StoredSegment {
  std::filesystem::path path;
  std::size_t events = 0;
  std::size_t bytes = 0;
};

/// Has the names of new files reach the disk: they are in the directory's own data. A filesystem that cannot do that is
/// left alone. It waits for the disk.
void sync_directory(const std::filesystem::path& directory);

/// Appends events to segments, and deletes the oldest ones once the others hold enough. On the store's thread.
class SegmentWriter {
 public:
  /// `keep`: events that are to remain. `stored`: what is there, the oldest first; nothing is appended to it.
  SegmentWriter(std::filesystem::path directory, std::size_t keep, std::deque<StoredSegment> stored);

  /// Writes all of them, or those up to an error. Returns how many could not be written; `error` says why.
  [[nodiscard]] std::size_t write(std::span<const EventPtr> events, std::string& error);
  /// Has what was written reach the disk. Returns how many events since the last time may never do so, for the disk
  /// failed; `error` says why, and the next event begins another segment: the kernel tells of such a failure once, and
  /// forgets what it could not write.
  [[nodiscard]] std::size_t sync(std::string& error);
  [[nodiscard]] bool is_dirty() const { return dirty_; }

 private:
  [[nodiscard]] bool begin_segment(std::uint64_t first, std::string& error);
  [[nodiscard]] bool write_bytes(std::string_view bytes, std::string& error);
  void prune();

  std::filesystem::path directory_;
  std::size_t keep_;
  std::size_t segment_events_;  // after so many the next one begins
  std::size_t most_bytes_;
  std::deque<StoredSegment> stored_;
  os::FileDescriptor file_;  // of the last one
  bool dirty_ = false;
  std::size_t unsynced_ = 0;  // events of the last one since it was synced
};

}  // namespace evictd::events
