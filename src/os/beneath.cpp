#include "os/beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace evictd::os {
namespace {

constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

FileDescriptor openat2(int directory, const char* relative) {
  open_how how{.flags = flags, .mode = 0, .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
  long opened = -1;
  do {
    opened = ::syscall(SYS_openat2, directory, relative, &how, sizeof how);
  } while (opened < 0 && (errno == EAGAIN || errno == EINTR));  // a directory on the way was renamed
  return FileDescriptor(static_cast<int>(opened));
}

/// Sandboxes refuse a call with EPERM, but so may what it is about: what is open already is not refused by itself.
bool is_lacking(int code, int directory) {
  if (code == EPERM && !openat2(directory, ".")) code = errno == EPERM ? ENOSYS : EPERM;
  return code == ENOSYS;
}

/// A part that is held but not opened tells what it is without asking its file system.
FileDescriptor open_part(int directory, const std::string& name) {
  if (!is_one_name(name)) {
    errno = EXDEV;
    return {};
  }
  FileDescriptor held{::openat(directory, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  struct statx part{};
  if (!held || ::statx(held.get(), "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, 0, &part) != 0) return {};
  const bool is_told = (part.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
  const bool is_mounted = (part.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  if (is_told && !is_mounted) return FileDescriptor(::openat(held.get(), ".", flags));
  errno = is_told ? EXDEV : ENOSYS;
  return {};
}

/// openat2, or what comes closest to it. ENOSYS: the kernel knows neither.
FileDescriptor open_safely(int directory, const std::string& relative) {
  static std::atomic<bool> is_known = true;
  if (is_known) {
    auto opened = openat2(directory, relative.c_str());
    if (opened) return opened;
    const int error = errno;
    const bool lacking = is_lacking(error, directory);
    errno = error;
    if (!lacking) return {};
    is_known = false;
  }
  return open_part_by_part(directory, relative);
}

}  // namespace

bool is_one_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && !name.contains('/') && !name.contains('\0');
}

FileDescriptor open_beneath(int directory, const std::string& relative) {
  auto opened = open_safely(directory, relative);
  if (opened || errno != ENOSYS) return opened;
  return FileDescriptor(::openat(directory, relative.c_str(), flags));
}

FileDescriptor open_only_beneath(int directory, const std::string& relative) {
  return open_safely(directory, relative);
}

FileDescriptor open_part_by_part(int directory, const std::string& relative) {
  FileDescriptor opened;
  for (std::size_t begin = 0; begin <= relative.size();) {
    const auto end = std::min(relative.find('/', begin), relative.size());
    auto next = open_part(opened ? opened.get() : directory, relative.substr(begin, end - begin));
    if (!next) return {};
    opened = std::move(next);
    begin = end + 1;
  }
  return opened;
}

}  // namespace evictd::os
