#include "node/filesystem.hpp"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <array>
#include <bit>
#include <cerrno>
#include <limits>

#include "os/file_descriptor.hpp"

namespace evictd::node {
namespace {

// What FUSE file systems answer is up to them.
std::int64_t bounded(std::uint64_t count, std::uint64_t unit = 1) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(count, unit, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

/// Of a btrfs: each of its subvolumes has a device of its own, but they share their space, and its UUID. (cAdvisor goes
/// by the device that is mounted: fs.go, GetDirFsDevice)
std::optional<dev_t> shared_device(const std::filesystem::path& path) {
  const os::FileDescriptor opened{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  btrfs_ioctl_fs_info_args info{};
  if (!opened || ::ioctl(opened.get(), BTRFS_IOC_FS_INFO, &info) != 0) return std::nullopt;
  const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(info.fsid);
  return halves[0] ^ halves[1];
}

}  // namespace

os::FileResult<FilesystemReading> read_filesystem(const std::filesystem::path& path) {
  struct stat file{};
  if (::stat(path.c_str(), &file) != 0) return std::unexpected(os::system_error(errno, path.native()));
  struct statfs numbers{};
  int result = 0;
  do result = ::statfs(path.c_str(), &numbers);
  while (result != 0 && errno == EINTR);
  if (result != 0) return std::unexpected(os::system_error(errno, path.native()));

  const auto block = static_cast<std::uint64_t>(numbers.f_frsize);
  FilesystemReading reading{.available = bounded(numbers.f_bavail, block),
                            .capacity = bounded(numbers.f_blocks, block),
                            .device = file.st_dev};
  if (numbers.f_type == BTRFS_SUPER_MAGIC) reading.device = shared_device(path).value_or(file.st_dev);
  if (numbers.f_files > 0)
    reading.inodes = FreeInodes{.free = bounded(numbers.f_ffree), .total = bounded(numbers.f_files)};
  return reading;
}

}  // namespace evictd::node
