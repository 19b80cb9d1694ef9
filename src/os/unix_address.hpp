#pragma once
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include "os/file_descriptor.hpp"

namespace evictd::os {

/// Of a unix socket's path, in bytes: as long as it has a terminating zero in the kernel's address.
inline constexpr std::size_t longest_socket_path = sizeof sockaddr_un::sun_path - 1;

namespace internal {

/// `call`: connect(2) or bind(2).
inline int at_path(int (*call)(int, const sockaddr*, socklen_t), int socket, std::string_view path) {
  if (path.empty()) return ENOENT;  // to the kernel it would be a name that is in no directory
  if (path.size() > longest_socket_path) return ENAMETOOLONG;
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, path.size());
  return call(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

}  // namespace internal

/// connect(2) to a unix socket, and bind(2). 0 or errno: ENAMETOOLONG for a path beyond longest_socket_path, ENOENT for
/// none.
[[nodiscard]] inline int connect_to(int socket, std::string_view path) {
  return internal::at_path(&::connect, socket, path);
}
[[nodiscard]] inline int bind_to(int socket, std::string_view path) { return internal::at_path(&::bind, socket, path); }

/// A connection, which does not block, to the stream socket of this name right in a directory; its path may be longer
/// than a socket's can be. It does not wait for whoever listens. Nothing where it failed, which errno tells: ENOTSOCK
/// where the name is of something else, also of a symbolic link, EAGAIN where the backlog is full.
[[nodiscard]] FileDescriptor connect_beneath(int directory, const std::string& name);

}  // namespace evictd::os
