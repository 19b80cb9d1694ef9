#include "events/segment_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <ranges>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "events/event_segment.hpp"
#include "evictd.pb.h"
#include "os/file_descriptor.hpp"

namespace evictd::events {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_bytes = 256 << 20;  // a second or two
/// None of ours is larger: the last record may begin just before it is full.
constexpr std::size_t largest_segment = full_segment + largest_record + 4096;

Result<std::string> read_file(const fs::path& path) {
  const os::FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0) return fail(std::generic_category().message(errno));
  if (!S_ISREG(found.st_mode) || static_cast<std::size_t>(found.st_size) > largest_segment)
    return fail("it holds no events");
  std::string bytes(static_cast<std::size_t>(found.st_size), '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const auto count = ::read(file.get(), bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(std::generic_category().message(errno));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  bytes.resize(size);
  return bytes;
}

/// Segments by their first number.
std::map<std::uint64_t, fs::path> list(const fs::path& directory) {
  std::map<std::uint64_t, fs::path> segments;
  std::error_code error;
  for (auto entry = fs::directory_iterator(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (const auto first = parse_segment_name(entry->path().filename().native()))
      segments.emplace(*first, entry->path());
  return segments;
}

class Loader {
 public:
  explicit Loader(std::size_t keep) : keep_(keep) {}

  [[nodiscard]] bool has_enough() const { return events_ >= keep_ || bytes_ >= most_bytes; }

  /// Segments come the newest first.
  void add(const fs::path& path, std::uint64_t first) {
    const auto bytes = read_file(path);
    if (!bytes) return set_aside(path, bytes.error().message);
    auto content = parse_segment(*bytes, first == 0 ? 0 : first - 1);
    if (!content.events.empty() && content.events.back()->sequence() >= next_)
      return set_aside(path, "its events are not in their order");
    if (content.events.empty() && !content.damage.empty()) return set_aside(path, content.damage);
    if (content.events.empty()) return static_cast<void>(::unlink(path.c_str()));  // the header alone
    if (!content.damage.empty()) cut(path, content);
    events_ += content.events.size();
    bytes_ += content.good_bytes;
    next_ = first;
    result_.segments.push_front({path, content.events.size(), content.good_bytes});
    parts_.push_back(std::move(content.events));
  }

  LoadedEvents take() {
    result_.events.reserve(events_);
    for (auto& part : std::views::reverse(parts_)) std::ranges::move(part, std::back_inserter(result_.events));
    return std::move(result_);
  }

 private:
  void set_aside(const fs::path& path, std::string_view why) {
    const auto aside = path.native() + ".aside";
    const bool moved = ::rename(path.c_str(), aside.c_str()) == 0;
    result_.complaints.push_back(moved ? fmt::format("{}: {}; it is {} now", path.native(), why, aside)
                                       : fmt::format("{}: {}, and it cannot be renamed: {}", path.native(), why,
                                                     std::generic_category().message(errno)));
  }

  void cut(const fs::path& path, const SegmentContent& content) {
    const bool done = ::truncate(path.c_str(), static_cast<off_t>(content.good_bytes)) == 0;
    result_.complaints.push_back(fmt::format("{}: {}{}; {} events are before that", path.native(), content.damage,
                                             done ? " and are cut off" : "", content.events.size()));
  }

  std::size_t keep_;
  std::size_t events_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t next_ = std::numeric_limits<std::uint64_t>::max();  // the first number of the segment after this one
  std::vector<std::vector<EventPtr>> parts_;
  LoadedEvents result_;
};

}  // namespace

LoadedEvents load_segments(const fs::path& directory, std::size_t keep) {
  Loader loader{keep};
  const auto segments = list(directory);
  for (const auto& [first, path] : std::views::reverse(segments)) {
    if (loader.has_enough())
      ::unlink(path.c_str());
    else
      loader.add(path, first);
  }
  return loader.take();
}

}  // namespace evictd::events
