#include "os/saved_slots.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "os/checksum.hpp"

namespace evictd::os {
namespace {

using Head = std::array<char, SavedSlots::head_size>;

bool read_whole(int file, char* target, std::size_t size, std::size_t offset) {
  return ::pread(file, target, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

}  // namespace

std::optional<std::string> SavedSlots::read(int file) {
  auto first = read_slot(file, offset_of(0));
  auto second = read_slot(file, offset_of(1));
  auto& newer = first && (!second || first->generation > second->generation) ? first : second;
  if (!newer) return std::nullopt;
  generation_ = newer->generation;
  return std::move(newer->content);
}

std::optional<SavedSlots::Slot> SavedSlots::read_slot(int file, std::size_t offset) const {
  Head head;
  if (!read_whole(file, head.data(), head.size(), offset)) return std::nullopt;
  const auto length = get_32(head.data() + 8);
  if (length > largest()) return std::nullopt;
  Slot slot{.generation = get_64(head.data()), .content = std::string(length, '\0')};
  if (slot.generation == 0 || !read_whole(file, slot.content.data(), length, offset + head.size())) return std::nullopt;
  if (checksum({head.data(), 12}, slot.content) != get_32(head.data() + 12)) return std::nullopt;
  return slot;
}

bool SavedSlots::are_untouched(int file) const {
  for (const std::uint64_t slot : {0, 1}) {
    Head head;
    if (!read_whole(file, head.data(), head.size(), offset_of(slot)) || head != Head{}) return false;
  }
  return true;
}

bool SavedSlots::store(int file, std::string_view content) {
  if (content.size() > largest()) {
    errno = EMSGSIZE;
    return false;
  }
  const auto generation = generation_ + 1;
  Head head;
  put_64(head.data(), generation);
  put_32(head.data() + 8, static_cast<std::uint32_t>(content.size()));
  put_32(head.data() + 12, checksum({head.data(), 12}, content));
  const std::array parts{iovec{head.data(), head.size()},
                         // pwritev does not change it
                         iovec{const_cast<char*>(content.data()), content.size()}};
  errno = 0;
  const auto written = ::pwritev(file, parts.data(), parts.size(), static_cast<off_t>(offset_of(generation)));
  if (written != static_cast<ssize_t>(head.size() + content.size())) {
    if (errno == 0) errno = EIO;  // some of it, for reasons of the disk's
    return false;
  }
  generation_ = generation;
  return true;
}

}  // namespace evictd::os
