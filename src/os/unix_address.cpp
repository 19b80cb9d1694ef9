#include "os/unix_address.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace evictd::os {

FileDescriptor connect_beneath(int directory, const std::string& name) {
  // The file that is looked at here is the one that is connected to, whatever stands at its name by then.
  const FileDescriptor file{::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode)) {
    errno = ENOTSOCK;
    return {};
  }
  FileDescriptor connection{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!connection) return {};
  if (const int error = connect_to(connection.get(), fmt::format("/proc/self/fd/{}", file.get()))) {
    connection.reset();
    errno = error;
  }
  return connection;
}

}  // namespace evictd::os
