#include "state/state_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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
/// The ring of events. In the files of earlier evictds there is none, and they are made longer.
constexpr std::size_t ring_offset = block + 2 * StateFile::slot_size;
constexpr std::size_t file_size = ring_offset + SavedEvents::ring_size;

using Head = std::array<char, head_size>;

std::string reason(int code) { return std::generic_category().message(code); }

std::string boot_of(const std::filesystem::path& file) {
  auto boot = host::read_boot_id(file);
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
  if (size != file_size && size != ring_offset) return {.kind = useless, .why = "it is damaged"};

  if (auto content = slots.read(file)) return {.kind = good, .content = *std::move(content)};
  if (slots.are_untouched(file)) return {};  // nothing was ever stored
  return {.kind = useless, .why = "it is damaged"};
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

}  // namespace evictd::state
