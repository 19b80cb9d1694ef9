#include "state/state_file.hpp"

#include <evictd.pb.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
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

/// The head: what it is, its version, the boot, the checksum of all that. It has a block of its own.
constexpr std::string_view magic = "evictdST";
constexpr std::uint32_t version = 1;
constexpr std::size_t boot_size = 36;
constexpr std::size_t head_size = 8 + 4 + boot_size + 4;
constexpr std::size_t block = StateFile::slots_offset;
/// The ring of events. In the files of earlier evictds there is none, and they are made longer. A file for which there
/// was no room ends anywhere in it.
constexpr std::size_t ring_offset = block + 2 * StateFile::slot_size;
constexpr std::size_t file_size = ring_offset + SavedEvents::ring_size;

using Head = std::array<char, head_size>;

std::string reason(int code) { return std::generic_category().message(code); }

std::string boot_of(const std::filesystem::path& file) {
  auto boot = os::read_boot_id(file);
  boot.resize(boot_size, ' ');
  return boot;
}

Head make_head(std::string_view boot) {
  Head head{};
  magic.copy(head.data(), magic.size());
  os::put_32(head.data() + 8, version);
  boot.copy(head.data() + 12, boot_size);
  os::put_32(head.data() + 12 + boot_size, os::checksum({head.data(), 12 + boot_size}));
  return head;
}

bool read_whole(int file, char* target, std::size_t size, std::size_t offset) {
  return ::pread(file, target, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

/// What a file says, and what is wrong with it.
struct Contents {
  enum class Kind : std::uint8_t { empty, other_boot, useless, good };
  Kind kind = Kind::empty;
  std::string why{};      // it is useless
  std::string content{};  // of the slot that holds
};

/// `slots` goes on after what is found.
Contents read_contents(int file, std::string_view boot, os::SavedSlots& slots) {
  using enum Contents::Kind;
  struct stat found{};
  if (::fstat(file, &found) != 0) return {.kind = useless, .why = reason(errno)};
  if (found.st_size == 0) return {};
  Head head;
  if (!S_ISREG(found.st_mode) || !read_whole(file, head.data(), head.size(), 0) ||
      std::string_view(head.data(), magic.size()) != magic)
    return {.kind = useless, .why = "it is no state of evictd's"};
  if (const auto of_file = os::get_32(head.data() + 8); of_file != version)
    return {.kind = useless, .why = fmt::format("it is of version {}, and version {} is known", of_file, version)};
  if (os::checksum({head.data(), 12 + boot_size}) != os::get_32(head.data() + 12 + boot_size))
    return {.kind = useless, .why = "it is damaged"};
  if (std::string_view(head.data() + 12, boot_size) != boot) return {.kind = other_boot};
  const auto size = static_cast<std::size_t>(found.st_size);
  if (size < ring_offset || size > file_size) return {.kind = useless, .why = "it is damaged"};

  if (auto content = slots.read(file)) return {.kind = good, .content = *std::move(content)};
  if (slots.are_untouched(file)) return {};  // nothing was ever stored
  return {.kind = useless, .why = "it is damaged"};
}

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

StateFile::StateFile(std::filesystem::path path, os::FileDescriptor file)
    : path_(std::move(path)), file_(std::move(file)), events_(file_.get(), ring_offset) {}

Result<StateFile::Found> StateFile::open(const std::filesystem::path& path, os::FileDescriptor inherited,
                                         const std::filesystem::path& boot_id) {
  using enum Contents::Kind;
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);  // where that fails, so does the next step
  const auto open_file = [&](int flags) {
    return StateFile{path,
                     os::FileDescriptor{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600)}};
  };
  Found found{.file = open_file(0)};
  if (!found.file.file_) return std::unexpected(found.file.cannot("opened"));
  const auto boot = boot_of(boot_id);
  auto contents = read_contents(found.file.file_.get(), boot, found.file.slots_);
  if (contents.kind == useless) {
    const auto aside = path.native() + ".aside";
    if (::rename(path.c_str(), aside.c_str()) != 0) return std::unexpected(found.file.cannot("set aside"));
    found.remark = fmt::format("{}: {}; it is {} now", path.native(), contents.why, aside);
    found.file = open_file(O_EXCL);
    if (!found.file.file_) return std::unexpected(found.file.cannot("opened"));
  }
  if (contents.kind == good) {
    // Where there is no room for that the ring ends early, and so do the events.
    static_cast<void>(::posix_fallocate(found.file.file_.get(), 0, file_size));
    found.content = std::move(contents.content);
    return found;
  }
  if (auto made = found.file.make(boot); !made) return std::unexpected(made.error());
  if (!inherited) return found;
  if (auto left = read_contents(inherited.get(), boot, found.file.slots_); left.kind == good) {
    if (auto copied = found.file.copy(inherited); !copied) return std::unexpected(copied.error());
    found.content = std::move(left.content);
  }
  return found;
}

/// All its blocks, for good. What was there is of no use to anybody.
Result<void> StateFile::make(std::string_view boot) {
  const auto head = make_head(boot);
  if (::ftruncate(file_.get(), 0) != 0) return std::unexpected(cannot("made"));
  if (const int failed = ::posix_fallocate(file_.get(), 0, file_size); failed != 0) {
    errno = failed;
    return std::unexpected(cannot("made"));
  }
  if (::pwrite(file_.get(), head.data(), head.size(), 0) != static_cast<ssize_t>(head.size()))
    return std::unexpected(cannot("written"));
  return {};
}

Result<void> StateFile::copy(const os::FileDescriptor& from) {
  std::string chunk(std::size_t{256} * 1024, '\0');
  errno = 0;
  for (off_t done = 0;;) {
    const auto count = ::pread(from.get(), chunk.data(), chunk.size(), done);
    if (count == 0) return {};
    if (count < 0 || ::pwrite(file_.get(), chunk.data(), static_cast<std::size_t>(count), done) != count)
      return std::unexpected(cannot("written"));
    done += count;
  }
}

Result<void> StateFile::store(std::string_view content) {
  if (content.size() > largest_content)
    return fail(fmt::format("{}: {} bytes are more than it holds", path_.native(), content.size()));
  if (!slots_.store(file_.get(), content)) return std::unexpected(cannot("written"));
  return {};
}

Error StateFile::cannot(std::string_view what) const {
  return {fmt::format("{}: cannot be {}: {}", path_.native(), what, reason(errno == 0 ? EIO : errno))};
}

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
