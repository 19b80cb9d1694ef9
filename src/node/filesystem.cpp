#include "node/filesystem.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <limits>

namespace evictd::node {
namespace {

// What FUSE file systems answer is up to them.
std::int64_t bounded(std::uint64_t count, std::uint64_t unit = 1) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(count, unit, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

}  // namespace

os::FileResult<FilesystemReading> read_filesystem(const std::filesystem::path& path) {
  struct stat file{};
  if (::stat(path.c_str(), &file) != 0) return std::unexpected(os::system_error(errno, path.native()));
  struct statvfs numbers{};
  int result = 0;
  do result = ::statvfs(path.c_str(), &numbers);
  while (result != 0 && errno == EINTR);
  if (result != 0) return std::unexpected(os::system_error(errno, path.native()));

  FilesystemReading reading{.available = bounded(numbers.f_bavail, numbers.f_frsize),
                            .capacity = bounded(numbers.f_blocks, numbers.f_frsize),
                            .device = file.st_dev};
  if (numbers.f_files > 0)
    reading.inodes = FreeInodes{.free = bounded(numbers.f_favail), .total = bounded(numbers.f_files)};
  return reading;
}

}  // namespace evictd::node
