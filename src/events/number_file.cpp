#include "events/number_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

#include "os/checksum.hpp"

namespace evictd::events {
namespace {

/// A slot's content: what it is and its version, the number.
constexpr std::string_view magic = "evictdN2";
constexpr std::size_t content_size = 8 + 8;
constexpr std::size_t file_size = std::size_t{2} * 4096;

/// A slot as the first version of this file had it, in the same places: what it is and its version, the generation, the
/// number, the checksum of all that.
constexpr std::string_view first_magic = "evictdN1";
using FirstSlot = std::array<char, 8 + 8 + 8 + 4>;

bool is_good(const FirstSlot& slot) {
  return std::string_view(slot.data(), first_magic.size()) == first_magic &&
         os::get_32(slot.data() + 24) == os::checksum({slot.data(), 24});
}

std::string reason(int code) { return std::generic_category().message(code); }

}  // namespace

Result<NumberFile> NumberFile::open(const std::filesystem::path& path) {
  os::FileDescriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) return fail(fmt::format("{}: {}", path.native(), reason(errno)));
  struct stat found{};
  if (::fstat(file.get(), &found) != 0) return fail(fmt::format("{}: {}", path.native(), reason(errno)));
  NumberFile result{path, std::move(file)};
  if (found.st_size != 0 && result.read()) return result;
  if (found.st_size != 0) {
    const auto aside = path.native() + ".aside";
    if (::rename(path.c_str(), aside.c_str()) != 0) return fail(fmt::format("{}: {}", path.native(), reason(errno)));
    result.complaint_ = fmt::format("{}: cannot be read, or is of a newer evictd: it is {} now", path.native(), aside);
    result.file_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!result.file_) return fail(fmt::format("{}: {}", path.native(), reason(errno)));
  }
  if (auto made = result.make(); !made) return std::unexpected(made.error());
  return result;
}

bool NumberFile::read() {
  const auto content = slots_.read(file_.get());
  if (!content) return read_first_format();
  if (content->size() != content_size || !content->starts_with(magic)) return false;
  highest_ = os::get_64(content->data() + magic.size());
  // A place that has the other slot alone: a second one would lie beyond the end of the file.
  os::SavedSlots other{{.offset = slots_.offset_of(slots_.generation() + 1), .slot_size = file_size}};
  const auto before = other.read(file_.get());
  if (before && before->size() == content_size && before->starts_with(magic))
    before_ = os::get_64(before->data() + magic.size());
  return true;
}

/// The next number is written over the older one of its slots, so that a write that is torn leaves the newer one.
bool NumberFile::read_first_format() {
  for (const std::uint64_t place : {0, 1}) {
    FirstSlot slot;
    const auto count = ::pread(file_.get(), slot.data(), slot.size(), static_cast<off_t>(slots_.offset_of(place)));
    if (count != static_cast<ssize_t>(slot.size()) || !is_good(slot)) continue;
    const auto generation = os::get_64(slot.data() + 8);
    const auto number = os::get_64(slot.data() + 16);
    if (highest_ && generation <= slots_.generation()) {
      before_ = number;
      continue;
    }
    slots_.go_on_after(generation);
    before_ = std::exchange(highest_, number).value_or(0);
  }
  return highest_.has_value();
}

/// Zeros, so that its blocks are there for good.
Result<void> NumberFile::make() {
  const std::array<char, file_size> zeros{};
  if (::pwrite(file_.get(), zeros.data(), zeros.size(), 0) != static_cast<ssize_t>(zeros.size()) ||
      ::fsync(file_.get()) != 0)
    return fail(fmt::format("{}: {}", path_.native(), reason(errno)));
  return {};
}

Result<void> NumberFile::write(std::uint64_t highest) {
  std::array<char, content_size> content{};
  magic.copy(content.data(), magic.size());
  os::put_64(content.data() + magic.size(), highest);
  if (!slots_.store(file_.get(), {content.data(), content.size()}) || ::fdatasync(file_.get()) != 0)
    return fail(fmt::format("{}: {}", path_.native(), reason(errno)));
  before_ = std::exchange(highest_, highest).value_or(0);
  return {};
}

}  // namespace evictd::events
