#include "events/segment_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "events/event_segment.hpp"
#include "evictd.pb.h"

namespace evictd::events {
namespace {

/// So many segments, and the one that is being written: with the oldest one a quarter of the history goes.
constexpr std::size_t segments_of_history = 4;
constexpr std::size_t least_segment_events = 64;
/// Of an event, on average: beyond that fewer are kept than were asked for. An eviction's are 0.3 to 3 KiB.
constexpr std::size_t most_bytes_of_event = 4096;

std::string failed(const std::filesystem::path& path, int code) {
  return fmt::format("{}: {}", path.native(), std::generic_category().message(code));
}

}  // namespace

void sync_directory(const std::filesystem::path& directory) {
  const os::FileDescriptor file{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (file) ::fsync(file.get());
}

SegmentWriter::SegmentWriter(std::filesystem::path directory, std::size_t keep, std::deque<StoredSegment> stored)
    : directory_(std::move(directory)),
      keep_(keep),
      segment_events_(std::max(keep / segments_of_history, least_segment_events)),
      most_bytes_(std::max(keep * most_bytes_of_event, 2 * full_segment)),
      stored_(std::move(stored)) {}

std::size_t SegmentWriter::write(std::span<const EventPtr> events, std::string& error) {
  std::size_t lost = 0;
  while (!events.empty()) {
    if (!file_ && !begin_segment(events.front()->sequence(), error)) return lost + events.size();
    auto& segment = stored_.back();
    std::string bytes;
    std::size_t taken = 0;
    std::size_t written = 0;
    while (taken < events.size() && segment.events + written < segment_events_ &&
           segment.bytes + bytes.size() < full_segment) {
      if (append_record(bytes, *events[taken++]))
        ++written;
      else
        ++lost;
    }
    if (!write_bytes(bytes, error)) return lost + written + events.size() - taken;
    segment.events += written;
    unsynced_ += written;
    segment.bytes += bytes.size();
    events = events.subspan(taken);
    if (segment.events >= segment_events_ || segment.bytes >= full_segment) {
      lost += sync(error);
      if (!file_) continue;  // the older ones stay: they are all that is sure to be there
      file_.reset();
      prune();
    }
  }
  return lost;
}

bool SegmentWriter::begin_segment(std::uint64_t first, std::string& error) {
  auto path = directory_ / segment_name(first);
  file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file_) return error = failed(path, errno), false;
  stored_.push_back({.path = std::move(path)});
  unsynced_ = 0;
  if (!write_bytes(segment_header, error)) return false;
  stored_.back().bytes = segment_header.size();
  sync_directory(directory_);
  return true;
}

/// What was written of it before an error is taken back, so that the segment ends with a whole event; where that fails
/// too, the next event begins another one.
bool SegmentWriter::write_bytes(std::string_view bytes, std::string& error) {
  const auto& segment = stored_.back();
  while (!bytes.empty()) {
    const auto count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      error = failed(segment.path, errno);
      const bool is_whole = segment.bytes > 0 && ::ftruncate(file_.get(), static_cast<off_t>(segment.bytes)) == 0;
      if (is_whole) return false;
      file_.reset();
      if (segment.bytes > 0) return false;
      ::unlink(segment.path.c_str());  // not even its header is there
      stored_.pop_back();
      return false;
    }
    dirty_ = true;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::size_t SegmentWriter::sync(std::string& error) {
  dirty_ = false;
  const auto unsynced = std::exchange(unsynced_, 0);
  if (!file_ || ::fdatasync(file_.get()) == 0) return 0;
  auto& segment = stored_.back();
  error = failed(segment.path, errno);
  segment.events -= unsynced;
  file_.reset();
  return unsynced;
}

void SegmentWriter::prune() {
  std::size_t events = 0;
  std::size_t bytes = 0;
  for (const auto& segment : stored_) {
    events += segment.events;
    bytes += segment.bytes;
  }
  while (stored_.size() > 1 && (events - stored_.front().events >= keep_ || bytes > most_bytes_)) {
    ::unlink(stored_.front().path.c_str());
    events -= stored_.front().events;
    bytes -= stored_.front().bytes;
    stored_.pop_front();
  }
}

}  // namespace evictd::events
