#include "prekill/socket_list.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "os/unix_address.hpp"

namespace evictd::prekill {
namespace {

constexpr int place_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;

bool is_name_of_hook(std::string_view name) { return !name.starts_with('.') && !name.ends_with('~'); }

bool is_socket(int directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_SOCK;
  struct stat found{};
  return ::fstatat(directory, entry.d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(found.st_mode);
}

/// Of an attempt to connect.
std::string why_not_connected(int code) {
  switch (code) {
    case EAGAIN: return "it takes no more connections";
    case ENOTSOCK: return "it is no socket";
    default: return os::reason(code);
  }
}

Result<os::FileDescriptor> connect_to_socket(int directory, const std::string& name) {
  auto connection = os::connect_beneath(directory, name);
  if (!connection) return fail(why_not_connected(errno));
  return connection;
}

}  // namespace

os::FileResult<SocketList> list_sockets(const std::string& directory) {
  os::FileDescriptor place{::open(directory.c_str(), place_flags)};
  if (!place) return std::unexpected(os::system_error(errno, directory));
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(place.get()), &::closedir);
  if (!listing) return std::unexpected(os::system_error(errno, directory));
  const int descriptor = place.release();
  SocketList found;
  for (std::size_t looked_at = 0; !found.is_cut;) {
    errno = 0;
    const auto* entry = ::readdir(listing.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (!is_name_of_hook(name)) continue;
    if (++looked_at > most_entries)
      found.is_cut = true;
    else if (!is_socket(descriptor, *entry))
      continue;
    else if (found.names.size() == most_sockets)
      found.is_cut = true;
    else
      found.names.emplace_back(name);
  }
  if (errno != 0 && !found.is_cut) return std::unexpected(os::system_error(errno, directory));
  std::ranges::sort(found.names);
  return found;
}

std::vector<Result<os::FileDescriptor>> connect_to_sockets(const std::string& directory,
                                                           const std::vector<std::string>& names) {
  std::vector<Result<os::FileDescriptor>> connections;
  connections.reserve(names.size());
  const os::FileDescriptor place{::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  const int code = errno;
  for (const auto& name : names) {
    if (place)
      connections.push_back(connect_to_socket(place.get(), name));
    else
      connections.emplace_back(fail(os::reason(code)));
  }
  return connections;
}

}  // namespace evictd::prekill
