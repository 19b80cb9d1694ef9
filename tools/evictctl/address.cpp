#include "evictctl/address.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

namespace evictd::ctl {
namespace {

/// Packets that nobody answers: a firewall's way to say no.
constexpr std::chrono::milliseconds longest_wait{5000};

struct HostAndPort {
  std::string host;
  std::string port;
};

HostAndPort split(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  auto host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return {.host = host, .port = address.substr(colon + 1)};
}

/// 0 or errno.
int try_to_connect(int family, const sockaddr* address, socklen_t size) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  int error = ::connect(fd, address, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(longest_wait.count()));
    socklen_t length = sizeof error;
    if (ready <= 0)
      error = ETIMEDOUT;
    else
      ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  ::close(fd);
  return error == EAGAIN ? 0 : error;  // a full backlog: somebody is there, and busy
}

std::string name_of_group(gid_t gid) {
  const auto* group = ::getgrgid(gid);
  return group != nullptr ? group->gr_name : std::to_string(gid);
}

/// Who may use the socket.
std::string who_may(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return "run as root";
  if ((found.st_mode & S_IWGRP) == 0) return "it is for administrators: run as root";
  return fmt::format("run as root, or as a member of the group {}", name_of_group(found.st_gid));
}

Error explain_absence(const std::string& where, int error) {
  switch (error) {
    case ENOENT: return {fmt::format("no agent answers at {} (no such file): is evictd running?", where)};
    case ECONNREFUSED: return {fmt::format("no agent answers at {} (connection refused): is evictd running?", where)};
    case EACCES: return {fmt::format("no access to {} (permission denied): {}", where, who_may(where))};
    case ENAMETOOLONG: return {fmt::format("{} is longer than a socket's path may be (107 bytes)", where)};
    default: return {fmt::format("no agent answers at {} ({})", where, std::strerror(error))};
  }
}

}  // namespace

Result<std::string> socket_of(const std::string& address) {
  std::string_view path = address;
  for (const std::string_view scheme : {"unix://", "unix:"})
    if (path.starts_with(scheme)) {
      path.remove_prefix(scheme.size());
      break;
    }
  if (!path.starts_with('/'))
    return fail(fmt::format("\"{}\" is not a unix socket such as unix:///run/evictd/evictd.sock", address));
  return std::string(path);
}

bool is_tcp(const std::string& address) {
  if (address.find('/') != std::string::npos || address.starts_with("unix:")) return false;
  const auto [host, port] = split(address);
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return !host.empty() && error == std::errc{} && end == port.data() + port.size() && number != 0;
}

Result<void> check_address(const std::string& address, const TlsFiles& files) {
  if (is_tcp(address)) {
    if (files.ca.empty() || files.certificate.empty() || files.key.empty())
      return fail(fmt::format("--address {} is asked by mutual TLS: it needs --ca, --cert and --key", address));
    return {};
  }
  const auto socket = socket_of(address);
  if (!socket) return fail(fmt::format("--address: {}, nor HOST:PORT", socket.error().message));
  if (!files.ca.empty() || !files.certificate.empty() || !files.key.empty())
    return fail("--ca, --cert and --key are for an --address HOST:PORT");
  return {};
}

std::string admin_socket_beside(const std::string& socket) {
  const auto path = std::filesystem::path(socket).parent_path() / "admin.sock";
  std::error_code ignored;
  return std::filesystem::is_socket(path, ignored) ? path.string() : socket;
}

Result<void> try_socket(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return std::unexpected(explain_absence(socket, ENAMETOOLONG));
  std::memcpy(address.sun_path, socket.data(), socket.size());
  if (const int error = try_to_connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address))
    return std::unexpected(explain_absence(socket, error));
  return {};
}

Result<void> try_tcp(const std::string& address) {
  const auto [host, port] = split(address);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found))
    return fail(fmt::format("{}: {}", host, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  int error = 0;
  for (const auto* each = addresses.get(); each != nullptr; each = each->ai_next) {
    error = try_to_connect(each->ai_family, each->ai_addr, each->ai_addrlen);
    if (error == 0) return {};
  }
  return std::unexpected(explain_absence(address, error));
}

}  // namespace evictd::ctl
