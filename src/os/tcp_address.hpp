#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::os {

struct TcpAddress {
  std::string host;  ///< without the brackets of an IPv6 address
  std::string port;  ///< 1 to 65535

  friend bool operator==(const TcpAddress&, const TcpAddress&) = default;
};

/// "HOST:PORT": "10.0.0.7:9443", "node-7:9443", "[::1]:9443".
[[nodiscard]] Result<TcpAddress> parse_tcp_address(std::string_view text);

/// Listens on every address that the host has. The sockets are non-blocking. A name service may be asked.
[[nodiscard]] Result<std::vector<os::FileDescriptor>> listen_on_tcp(const TcpAddress& address);

}  // namespace evictd::os
