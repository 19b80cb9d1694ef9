#include "os/tcp_address.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <expected>
#include <memory>
#include <utility>

#include "core/number.hpp"

namespace evictd::os {
namespace {

/// The socket, or errno.
std::expected<os::FileDescriptor, int> listen_on(const addrinfo& address, bool v6_only) {
  os::FileDescriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return std::unexpected(errno);
  const auto set = [&](int level, int option, int value) {
    static_cast<void>(::setsockopt(socket.get(), level, option, &value, sizeof value));
  };
  set(SOL_SOCKET, SO_REUSEADDR, 1);  // connections of the agent before us may still linger
  if (address.ai_family == AF_INET6) set(IPPROTO_IPV6, IPV6_V6ONLY, v6_only ? 1 : 0);
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0) return std::unexpected(errno);
  if (::listen(socket.get(), SOMAXCONN) != 0) return std::unexpected(errno);
  return socket;
}

}  // namespace

Result<TcpAddress> parse_tcp_address(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto no_port = [&] { return fail(fmt::format("\"{}\" has no port: HOST:PORT is wanted", text)); };
  if (colon == std::string_view::npos) return no_port();
  auto host = text.substr(0, colon);
  const auto port = text.substr(colon + 1);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (port.empty() || (text.starts_with('[') && !bracketed)) return no_port();
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!bracketed && host.find(':') != std::string_view::npos)
    return fail(fmt::format("\"{}\": an IPv6 address stands in brackets: [::1]:9443", text));
  if (host.empty())
    return fail(fmt::format("\"{}\" has no host: HOST:PORT is wanted, 0.0.0.0 for all addresses", text));
  if (!core::is_port(port)) return fail(fmt::format("\"{}\": {} is no port (1 to 65535)", text, port));
  return TcpAddress{.host = std::string(host), .port = std::string(port)};
}

Result<std::vector<os::FileDescriptor>> listen_on_tcp(const TcpAddress& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found))
    return fail(fmt::format("{}: {}", address.host, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);

  std::vector<os::FileDescriptor> sockets;
  int failure = 0;
  for (const auto* each = addresses.get(); each != nullptr; each = each->ai_next) {
    auto socket = listen_on(*each, addresses->ai_next != nullptr);
    if (socket)
      sockets.push_back(*std::move(socket));
    else if (socket.error() != EAFNOSUPPORT && socket.error() != EADDRNOTAVAIL)
      return fail(fmt::format("{}:{}: {}", address.host, address.port, std::strerror(socket.error())));
    else
      failure = socket.error();  // "localhost" is ::1, too, where there is no IPv6
  }
  if (sockets.empty()) return fail(fmt::format("{}:{}: {}", address.host, address.port, std::strerror(failure)));
  return sockets;
}

}  // namespace evictd::os
