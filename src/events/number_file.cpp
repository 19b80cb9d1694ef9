#include "events/number_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "os/checksum.hpp"

namespace evictd::events {
namespace {

/// A slot: what it is and its version, the generation, the number, the checksum of all that.
constexpr std::string_view magic = "evictdN1";
constexpr std::size_t slot_size = 8 + 8 + 8 + 4;
using Slot = std::array<char, slot_size>;
/// Slots lie in blocks of their own: no write of one can tear the other.
constexpr off_t block = 4096;
constexpr std::size_t file_size = 2 * block;

Slot make_slot(std::uint64_t generation, std::uint64_t highest) {
  Slot slot{};
  magic.copy(slot.data(), magic.size());
  os::put_64(slot.data() + 8, generation);
  os::put_64(slot.data() + 16, highest);
  os::put_32(slot.data() + 24, os::checksum({slot.data(), 24}));
  return slot;
}

bool is_good(const Slot& slot) {
  return std::string_view(slot.data(), magic.size()) == magic &&
         os::get_32(slot.data() + 24) == os::checksum({slot.data(), 24});
}

std::string reason(int code) { return std::generic_category().message(code); }

}  // namespace

Result<NumberFile> NumberFile::open(const std::filesystem::path& path) {
  os::FileDescriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) return fail(fmt::format("{}: {}", path.native(), reason(errno)));
  struct stat found {};
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
  for (const off_t offset : {off_t{0}, block}) {
    Slot slot;
    if (::pread(file_.get(), slot.data(), slot.size(), offset) != static_cast<ssize_t>(slot.size())) continue;
    const auto generation = os::get_64(slot.data() + 8);
    if (!is_good(slot) || (highest_ && generation <= generation_)) continue;
    generation_ = generation;
    highest_ = os::get_64(slot.data() + 16);
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
  const auto slot = make_slot(generation_ + 1, highest);
  const off_t offset = (generation_ + 1) % 2 == 0 ? 0 : block;
  const auto written = ::pwrite(file_.get(), slot.data(), slot.size(), offset);
  if (written != static_cast<ssize_t>(slot.size()) || ::fdatasync(file_.get()) != 0)
    return fail(fmt::format("{}: {}", path_.native(), reason(written >= 0 && errno == 0 ? EIO : errno)));
  ++generation_;
  highest_ = highest;
  return {};
}

}  // namespace evictd::events
