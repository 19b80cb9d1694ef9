#include "node/beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace evictd::node {

FileDescriptor open_beneath(int directory, const std::string& relative) {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  static std::atomic<bool> is_known = true;
  if (is_known) {
    open_how how{.flags = flags, .mode = 0, .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    long opened = -1;
    do {
      opened = ::syscall(SYS_openat2, directory, relative.c_str(), &how, sizeof how);
    } while (opened < 0 && (errno == EAGAIN || errno == EINTR));  // somebody renames what is on the way
    if (opened >= 0) return FileDescriptor(static_cast<int>(opened));
    if (errno != ENOSYS && errno != EPERM) return {};
    is_known = false;
  }
  return FileDescriptor(::openat(directory, relative.c_str(), flags));
}

}  // namespace evictd::node
