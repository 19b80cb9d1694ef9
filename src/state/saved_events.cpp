#include "state/saved_events.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "os/checksum.hpp"

namespace evictd::state {
namespace {

/// A mark: its four numbers, and their checksum.
using Mark = std::array<char, 4 * 8 + 4>;
constexpr std::size_t mark_distance = 1024;

/// After each event, for the ring is read from its end: the event's size, and a checksum of that, of the event and of
/// where it ends. So what a later round wrote to the same place is not taken for it.
constexpr std::size_t trailer_size = 4 + 4;

constexpr std::size_t offset_of(std::uint64_t generation) {
  return SavedEvents::marks_offset + generation % 2 * mark_distance;
}

std::uint32_t checksum_of(std::string_view event, std::uint64_t end) {
  std::array<char, 12> place{};
  os::put_32(place.data(), static_cast<std::uint32_t>(event.size()));
  os::put_64(place.data() + 4, end);
  return os::checksum(event, {place.data(), place.size()});
}

Error cannot_write() {
  return {fmt::format("events cannot be saved: {}", std::generic_category().message(errno == 0 ? EIO : errno))};
}

}  // namespace

std::optional<EventMark> SavedEvents::read_mark() const {
  std::optional<EventMark> newest;
  for (const std::uint64_t slot : {0, 1}) {
    Mark bytes;
    const auto count = ::pread(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset_of(slot)));
    if (count != static_cast<ssize_t>(bytes.size())) continue;
    if (os::checksum({bytes.data(), bytes.size() - 4}) != os::get_32(bytes.data() + bytes.size() - 4)) continue;
    const EventMark mark{.generation = os::get_64(bytes.data()),
                         .last = os::get_64(bytes.data() + 8),
                         .reserved = os::get_64(bytes.data() + 16),
                         .end = os::get_64(bytes.data() + 24)};
    if (!newest || mark.generation > newest->generation) newest = mark;
  }
  return newest;
}

std::vector<std::string> SavedEvents::read(const EventMark& mark) const {
  std::vector<std::string> events;
  const auto oldest = mark.end > ring_size ? mark.end - ring_size : 0;
  for (auto end = mark.end; end >= oldest + trailer_size;) {
    std::array<char, trailer_size> trailer{};
    if (!read_at(end - trailer_size, trailer.data(), trailer.size())) break;
    const std::size_t size = os::get_32(trailer.data());
    if (size > largest || end - oldest < trailer_size + size) break;
    std::string event(size, '\0');
    if (!read_at(end - trailer_size - size, event.data(), size)) break;
    if (checksum_of(event, end) != os::get_32(trailer.data() + 4)) break;
    events.push_back(std::move(event));
    end -= trailer_size + size;
  }
  std::ranges::reverse(events);
  return events;
}

void SavedEvents::resume_after(const EventMark& mark) {
  end_ = mark.end;
  generation_ = mark.generation;
}

void SavedEvents::add(std::string_view event) {
  if (event.size() > largest) return;
  added_.append(event);
  std::array<char, trailer_size> trailer{};
  os::put_32(trailer.data(), static_cast<std::uint32_t>(event.size()));
  os::put_32(trailer.data() + 4, checksum_of(event, end_ + added_.size() + trailer_size));
  added_.append(trailer.data(), trailer.size());
}

Result<void> SavedEvents::write() {
  if (added_.empty()) return {};
  const auto added = std::exchange(added_, {});
  const auto end = end_ + added.size();
  const auto rest = std::string_view(added).substr(added.size() - std::min(added.size(), ring_size));
  errno = 0;
  if (!write_at(end - rest.size(), rest)) return std::unexpected(cannot_write());
  end_ = end;
  return {};
}

EventMark SavedEvents::next_mark(std::uint64_t last, std::uint64_t reserved) {
  return {.generation = ++generation_, .last = last, .reserved = reserved, .end = end_};
}

Result<void> SavedEvents::save(const EventMark& mark) {
  Mark bytes{};
  os::put_64(bytes.data(), mark.generation);
  os::put_64(bytes.data() + 8, mark.last);
  os::put_64(bytes.data() + 16, mark.reserved);
  os::put_64(bytes.data() + 24, mark.end);
  os::put_32(bytes.data() + bytes.size() - 4, os::checksum({bytes.data(), bytes.size() - 4}));
  errno = 0;
  const auto written = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset_of(mark.generation)));
  if (written != static_cast<ssize_t>(bytes.size())) return std::unexpected(cannot_write());
  return {};
}

bool SavedEvents::read_at(std::uint64_t position, char* target, std::size_t size) const {
  while (size > 0) {
    const auto place = position % ring_size;
    const auto count = std::min<std::size_t>(size, ring_size - place);
    if (::pread(file_, target, count, static_cast<off_t>(offset_ + place)) != static_cast<ssize_t>(count)) return false;
    position += count;
    target += count;
    size -= count;
  }
  return true;
}

bool SavedEvents::write_at(std::uint64_t position, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto place = position % ring_size;
    const auto part = bytes.substr(0, ring_size - place);
    if (::pwrite(file_, part.data(), part.size(), static_cast<off_t>(offset_ + place)) !=
        static_cast<ssize_t>(part.size()))
      return false;
    position += part.size();
    bytes.remove_prefix(part.size());
  }
  return true;
}

std::optional<EventMark> newest_mark(const SavedEvents& saved, const std::optional<EventMark>& of_state) {
  auto mark = saved.read_mark();
  return mark && (!of_state || mark->generation > of_state->generation) ? mark : of_state;
}

events::RescuedEvents rescue(SavedEvents& saved, const EventMark& mark) {
  events::RescuedEvents rescued{.events = {}, .last = mark.last, .reserved = mark.reserved};
  for (const auto& bytes : saved.read(mark)) {
    auto event = std::make_shared<evictd::v1::Event>();
    const auto before = rescued.events.empty() ? 0 : rescued.events.back()->sequence();
    if (!event->ParseFromString(bytes) || event->sequence() <= before || event->sequence() > rescued.last) continue;
    rescued.events.push_back(std::move(event));
  }
  saved.resume_after(mark);
  return rescued;
}

Result<void> EventSaver::save() {
  if (log_.unsaved().empty() && mark_.reserved == log_.reserved()) return {};
  auto saved = write();
  if (saved) saved = save_mark();
  finish();
  return saved;
}

Result<void> EventSaver::write() {
  std::string bytes;
  for (const auto& event : log_.unsaved()) {
    bytes.clear();
    event->AppendToString(&bytes);
    saved_.add(bytes);
  }
  auto written = saved_.write();
  mark_ = saved_.next_mark(log_.last_number(), log_.reserved());
  return written;
}

}  // namespace evictd::state
