#pragma once
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace evictd::kube {

/// Where a server listens, taken apart.
struct Server {
  bool tls = true;
  std::string host;  ///< a name or an address; an IPv6 address without brackets
  std::string port;
  std::string base_path{};  ///< before every target: empty, or "/prefix" without a slash at its end

  /// "https://10.0.0.1:6443/prefix": as errors name it. The port is always there.
  [[nodiscard]] std::string url() const;
  /// The value of a request's Host field: without the scheme's own port.
  [[nodiscard]] std::string authority() const;

  friend bool operator==(const Server&, const Server&) = default;
};

/// "https://HOST[:PORT][/PATH]" or "http://…"; ports 443 and 80 unless given. Anything else that a URL may have (user,
/// query, fragment) is an error: it would be a secret in the wrong place or a mistake.
[[nodiscard]] Result<Server> parse_url(std::string_view text);

/// For a value in a query or a path: everything but RFC 3986's unreserved characters as %XX.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace evictd::kube
