#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"

// The directory of hooks' sockets. All of it waits for a disk: not for the reactor's thread.
namespace evictd::prekill {

/// More sockets are not asked; a node has a hook or two.
inline constexpr std::size_t most_sockets = 64;
/// More entries of the directory are not looked at.
inline constexpr std::size_t most_entries = 4096;

struct SocketList {
  std::vector<std::string> names;  ///< sorted
  bool is_cut = false;             ///< there are more, or more entries than are looked at
};

/// The sockets right in the directory: no links, and none whose name begins with a dot or ends with "~", as
/// systemd-oomd goes by them. Whether anybody listens is not looked at.
[[nodiscard]] os::FileResult<SocketList> list_sockets(const std::string& directory);

/// Connects to sockets of the directory without waiting for those that listen to take the connection: one whose backlog
/// is full is an error. One result for each name, in their order; an error does not name the socket. A stream socket
/// that does not block.
[[nodiscard]] std::vector<Result<os::FileDescriptor>> connect_to_sockets(const std::string& directory,
                                                                         const std::vector<std::string>& names);

}  // namespace evictd::prekill
