#include "devices/plugin_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/printable.hpp"
#include "devices/registration.hpp"
#include "os/unix_address.hpp"

namespace evictd::devices {
namespace {

namespace fs = std::filesystem;

/// As a kubelet makes it.
constexpr mode_t directory_mode = 0750;

Result<void> make_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), directory_mode) == 0 || errno == EEXIST) return {};
  return fail(fmt::format("{} cannot be made: {}", directory, std::strerror(errno)));
}

Result<void> remove_sockets(const std::string& directory) {
  std::error_code error;
  std::vector<fs::path> sockets;
  for (fs::directory_iterator entry{directory, error}, end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->symlink_status(ignored).type() == fs::file_type::socket) sockets.push_back(entry->path());
  }
  if (error) return fail(fmt::format("{} cannot be listed: {}", directory, error.message()));
  for (const auto& socket : sockets)
    if (::unlink(socket.c_str()) != 0 && errno != ENOENT)
      return fail(fmt::format("{} cannot be removed: {}", core::printable(socket.native()), std::strerror(errno)));
  return {};
}

}  // namespace

Result<os::ListeningSocket> open_registration_socket(const std::string& directory) {
  if (auto made = make_directory(directory); !made) return std::unexpected(made.error());
  const auto path = fmt::format("{}/{}", directory, registration_socket);
  if (auto free = os::remove_stale_socket(path); !free) return std::unexpected(free.error());
  // Before there is a new kubelet.sock: a plugin that sees it makes its own socket anew.
  if (auto removed = remove_sockets(directory); !removed) return std::unexpected(removed.error());
  auto socket = os::ListeningSocket::open(path);
  if (!socket) return socket;
  if (auto admitted = os::admit_to_socket(path, "", 0600); !admitted) return std::unexpected(admitted.error());
  return socket;
}

Result<os::FileDescriptor> connect_to_plugin(const std::string& directory, const std::string& name) {
  const os::FileDescriptor place{::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  auto connection = place ? os::connect_beneath(place.get(), name) : os::FileDescriptor{};
  if (connection) return connection;
  const auto* const why = errno == ENOTSOCK ? "is no socket"
                          : errno == EAGAIN ? "takes no more connections"
                                            : std::strerror(errno);
  return fail(fmt::format("{}/{}: {}", directory, core::printable(name), why));
}

}  // namespace evictd::devices
