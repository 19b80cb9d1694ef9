#include "wake/memory_counters_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <utility>

#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"

namespace evictd::wake {
namespace {

std::optional<MemoryCounters> read_counters(int file) {
  std::array<char, 1024> buffer;
  const auto size = ::pread(file, buffer.data(), buffer.size(), 0);
  if (size < 0) return std::nullopt;
  return parse_memory_counters({buffer.data(), static_cast<std::size_t>(size)});
}

}  // namespace

os::FileResult<bool> MemoryCountersFile::keep_open(const os::Directory& cgroup, std::string_view name) {
  // Not by reading: what is read here would not be announced any more.
  if (polled_.is_open() && cgroup.inode() == inode_) return false;
  close();
  const auto path = fmt::format("{}/{}", cgroup.path(), name);
  os::FileDescriptor file{::openat(cgroup.descriptor(), std::string(name).c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return std::unexpected(os::system_error(errno, path));
  // Until it was read once a file counts as changed.
  const auto counters = read_counters(file.get());
  if (!counters) return std::unexpected(os::system_error(errno, path));
  counters_ = *counters;
  inode_ = cgroup.inode();
  const auto watched = polled_.watch(std::move(file), std::chrono::milliseconds(100), [this] { changed(); });
  if (!watched) return std::unexpected(watched.error());
  return true;
}

std::optional<MemoryCounters> MemoryCountersFile::counters() const {
  return polled_.is_open() ? std::optional(counters_) : std::nullopt;
}

void MemoryCountersFile::changed() {
  const auto now = read_counters(polled_.descriptor());
  if (!now) return close();
  if (const auto before = std::exchange(counters_, *now); before != *now) on_change_(before, *now);
}

}  // namespace evictd::wake
