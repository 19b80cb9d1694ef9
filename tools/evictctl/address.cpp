#include "evictctl/address.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <netdb.h>
#include <sys/stat.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "os/numbers.hpp"
#include "os/unix_address.hpp"

namespace evictd::ctl {
namespace {

namespace asio = boost::asio;

/// Packets that nobody answers: a firewall's way to say no. For all addresses of a host together, since gRPC, which
/// takes them one after the other, waits longer than a call may take for the first one alone.
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

/// As getaddrinfo() says it: Asio would have a name not found "(authoritative)", whoever was asked.
std::string why_unresolved(const boost::system::error_code& error) {
  if (error == asio::error::host_not_found) return ::gai_strerror(EAI_NONAME);
  if (error == asio::error::host_not_found_try_again) return ::gai_strerror(EAI_AGAIN);
  return error.message();
}

/// Who may use the socket.
std::string who_may(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return "run as root";
  if ((found.st_mode & S_IWGRP) == 0) return "it is for administrators: run as root";
  const auto* group = ::getgrgid(found.st_gid);
  return fmt::format("run as root, or as a member of the group {}",
                     group != nullptr ? group->gr_name : std::to_string(found.st_gid));
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

/// Whether one of the endpoints takes a connection. A full backlog is one: somebody is there, and busy.
template <class Protocol>
Result<void> try_to_connect(const std::string& where, const std::vector<typename Protocol::endpoint>& endpoints) {
  asio::io_context loop;
  typename Protocol::socket socket(loop);
  int result = ETIMEDOUT;
  asio::async_connect(socket, endpoints,
                      [&](const boost::system::error_code& error, const auto&) { result = error.value(); });
  loop.run_for(longest_wait);
  if (result != 0) return std::unexpected(explain_absence(where, result));
  return {};
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
  const auto number = os::parse_number(port).value_or(0);
  return !host.empty() && number > 0 && number < 65536;
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
  using Protocol = asio::local::stream_protocol;
  if (socket.size() > os::longest_socket_path) return std::unexpected(explain_absence(socket, ENAMETOOLONG));
  return try_to_connect<Protocol>(socket, {Protocol::endpoint(socket)});
}

Result<void> try_tcp(const std::string& address) {
  using Protocol = asio::ip::tcp;
  const auto [host, port] = split(address);
  asio::io_context loop;
  boost::system::error_code failure;
  const auto found = Protocol::resolver(loop).resolve(host, port, Protocol::resolver::numeric_service, failure);
  if (failure) return fail(fmt::format("{}: {}", host, why_unresolved(failure)));
  return try_to_connect<Protocol>(address, {found.begin(), found.end()});
}

}  // namespace evictd::ctl
