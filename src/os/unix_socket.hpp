#pragma once
#include <sys/types.h>

#include <string>
#include <utility>

#include "core/error.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::os {

/// Makes the directory that `path` lies in, if only that is missing: /run is empty after a boot, and where systemd does
/// not make a socket's directory, we do.
[[nodiscard]] Result<void> make_directory_of(const std::string& path);

/// Removes a socket that a dead server left at `path`. One that somebody answers on is an error, as is whatever else
/// stands there.
[[nodiscard]] Result<void> remove_stale_socket(const std::string& path);

/// Makes sure that a server can listen on `path`: a socket left behind by a dead one is removed, one that somebody
/// answers on is an error, as is whatever else keeps a socket from being bound there. Nothing is left at `path` on
/// success.
[[nodiscard]] Result<void> claim_socket_path(const std::string& path);

/// A server's own socket at a path.
class ListeningSocket {
 public:
  /// Claims the path and listens on it, closed to everybody (see admit_to_socket).
  [[nodiscard]] static Result<ListeningSocket> open(const std::string& path);
  ListeningSocket(ListeningSocket&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        device_(other.device_),
        inode_(other.inode_),
        socket_(std::move(other.socket_)) {}
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  /// Removes the path, unless another socket stands there by now.
  ~ListeningSocket();

  /// The descriptor, non-blocking. The path stays with this object.
  [[nodiscard]] os::FileDescriptor take() { return std::move(socket_); }

 private:
  ListeningSocket(std::string path, os::FileDescriptor socket);

  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  os::FileDescriptor socket_;
};

/// The group named `group`, or numbered so.
[[nodiscard]] Result<gid_t> find_group(const std::string& group);

/// api.group where it is empty: "evictd" if there is such a group, otherwise "", the process's own.
[[nodiscard]] std::string usual_group();

/// Hands a bound socket to those who may use it: first its group (empty: as it is), then its mode, so that it is never
/// open to the wrong ones.
[[nodiscard]] Result<void> admit_to_socket(const std::string& path, const std::string& group, mode_t mode);

/// What this process creates while this lives is closed to everybody else. For where gRPC binds a socket, of which no
/// more is known than its path: the mask belongs to the whole process, with all its threads.
class ClosedUmask {
 public:
  ClosedUmask();
  ~ClosedUmask();
  ClosedUmask(const ClosedUmask&) = delete;
  ClosedUmask& operator=(const ClosedUmask&) = delete;

 private:
  mode_t previous_;
};

}  // namespace evictd::os
