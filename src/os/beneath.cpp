#include "os/beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

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

}  // namespace

FileDescriptor open_beneath(int directory, const std::string& relative) {
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
  return FileDescriptor(::openat(directory, relative.c_str(), flags));
}

FileDescriptor open_only_beneath(int directory, const std::string& relative) {
  return openat2(directory, relative.c_str());
}

}  // namespace evictd::os
