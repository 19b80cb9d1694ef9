#include "os/unix_socket.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/number.hpp"
#include "os/unix_address.hpp"

namespace evictd::os {
namespace {

/// A stream socket of its own. Non-blocking: a listener whose backlog is full must not hold up the start.
class Socket {
 public:
  /// 0 or errno.
  [[nodiscard]] int connect(const std::string& path) const {
    return socket_ ? os::connect_to(socket_.get(), path) : error_;
  }
  /// The path that it is bound to then has the same mode: Linux takes it from the socket. The umask would be that of
  /// other threads, too.
  [[nodiscard]] int close_to_all() const {
    if (!socket_) return error_;
    return ::fchmod(socket_.get(), 0) == 0 ? 0 : errno;
  }
  [[nodiscard]] int bind(const std::string& path) const { return socket_ ? os::bind_to(socket_.get(), path) : error_; }
  [[nodiscard]] int listen() const { return ::listen(socket_.get(), SOMAXCONN) == 0 ? 0 : errno; }
  [[nodiscard]] os::FileDescriptor release() { return std::move(socket_); }

 private:
  os::FileDescriptor socket_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  int error_ = errno;  // of the attempt to open it
};

std::unexpected<Error> fail_with(const std::string& path, int error) {
  const auto directory = std::filesystem::path(path).parent_path().string();
  switch (error) {
    case ENOENT: return fail(fmt::format("{}: the directory {} does not exist: create it", path, directory));
    case EACCES:
    case EPERM:
      return fail(fmt::format("{}: {}: evictd must be allowed to write to {}", path, std::strerror(error), directory));
    default: return fail(fmt::format("{}: {}", path, std::strerror(error)));
  }
}

Result<void> remove(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return fail_with(path, errno);
}

/// Whatever stands at `path`: only a socket without a listener may go.
Result<void> remove_stale(const std::string& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return {};  // not there, or the attempt to bind says why it cannot be seen
  if (!S_ISSOCK(found.st_mode))
    return fail(fmt::format("{}: exists and is not a socket: remove it, or choose another path", path));
  const int error = Socket().connect(path);
  if (error == ECONNREFUSED) return remove(path);
  if (error == 0 || error == EAGAIN)
    return fail(
        fmt::format("{}: somebody answers on it already (another evictd?): stop it, or choose another path", path));
  return fail_with(path, error);
}

/// What keeps a socket from being made at `path` and can be seen or mended before.
Result<void> prepare(const std::string& path) {
  if (path.empty()) return fail("the path of the socket is empty");
  if (path.size() > os::longest_socket_path)
    return fail(fmt::format("{}: a socket's path may have {} bytes, this one has {}", path, os::longest_socket_path,
                            path.size()));
  return remove_stale(path);
}

}  // namespace

Result<void> make_directory_of(const std::string& path) {
  const auto directory = std::filesystem::path(path).parent_path();
  std::error_code error;
  std::filesystem::create_directory(directory, error);
  if (error) return fail(fmt::format("{} cannot be made: {}", directory.native(), error.message()));
  return {};
}

Result<void> remove_stale_socket(const std::string& path) { return prepare(path); }

Result<void> claim_socket_path(const std::string& path) {
  if (auto prepared = prepare(path); !prepared) return prepared;
  // gRPC says only that it could not listen. Binding once ourselves gives the reason.
  if (const int error = Socket().bind(path)) return fail_with(path, error);
  return remove(path);
}

Result<ListeningSocket> ListeningSocket::open(const std::string& path) {
  if (auto prepared = prepare(path); !prepared) return std::unexpected(prepared.error());
  Socket socket;
  if (const int error = socket.close_to_all()) return fail_with(path, error);
  if (const int error = socket.bind(path)) return fail_with(path, error);
  if (const int error = socket.listen()) return fail_with(path, error);
  return ListeningSocket(path, socket.release());
}

ListeningSocket::ListeningSocket(std::string path, os::FileDescriptor socket)
    : path_(std::move(path)), socket_(std::move(socket)) {
  struct stat found{};
  if (::lstat(path_.c_str(), &found) != 0) return;
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

ListeningSocket::~ListeningSocket() {
  struct stat found{};
  if (path_.empty() || ::lstat(path_.c_str(), &found) != 0) return;
  if (found.st_dev == device_ && found.st_ino == inode_) ::unlink(path_.c_str());
}

Result<gid_t> find_group(const std::string& group) {
  if (const struct group* entry = ::getgrnam(group.c_str())) return entry->gr_gid;
  if (const auto number = core::whole_number<gid_t>(group)) return *number;
  return fail(
      fmt::format("group \"{}\": there is no such group on this machine: create it with groupadd --system", group));
}

std::string usual_group() {
  constexpr auto name = "evictd";
  return ::getgrnam(name) != nullptr ? name : "";
}

Result<void> admit_to_socket(const std::string& path, const std::string& group, mode_t mode) {
  if (!group.empty()) {
    const auto number = find_group(group);
    if (!number) return std::unexpected(number.error());
    if (::chown(path.c_str(), static_cast<uid_t>(-1), *number) != 0)
      return fail(fmt::format("{}: cannot give it to group \"{}\": {}", path, group, std::strerror(errno)));
  }
  if (::chmod(path.c_str(), mode) != 0)
    return fail(fmt::format("{}: cannot set mode {:04o}: {}", path, mode, std::strerror(errno)));
  return {};
}

ClosedUmask::ClosedUmask() : previous_(::umask(0777)) {}
ClosedUmask::~ClosedUmask() { ::umask(previous_); }

}  // namespace evictd::os
