#include "kube/url.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/number.hpp"

namespace evictd::kube {
namespace {

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_name(std::string_view host) {
  return !host.empty() && host.size() <= 253 &&
         std::ranges::all_of(host, [](char c) { return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_'; });
}

bool is_ipv6(std::string_view host) {
  return host.contains(':') && std::ranges::all_of(host, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
         });
}

bool is_path(std::string_view path) {
  return std::ranges::all_of(
      path, [](char c) { return is_letter_or_digit(c) || std::string_view("/-._~%:@!$&'()*+,;=").contains(c); });
}

std::string bracketed(const std::string& host) { return host.contains(':') ? "[" + host + "]" : host; }

}  // namespace

std::string Server::url() const {
  return fmt::format("{}://{}:{}{}", tls ? "https" : "http", bracketed(host), port, base_path);
}

std::string Server::authority() const {
  const bool is_default = port == (tls ? "443" : "80");
  return is_default ? bracketed(host) : bracketed(host) + ":" + port;
}

Result<Server> parse_url(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(fmt::format("\"{}\" is no server's URL: {}", text, why));
  };
  Server server;
  auto rest = text;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    server.tls = false;
    rest.remove_prefix(7);
  } else {
    return wrong("it must begin with https:// or http://");
  }

  const auto slash = std::min(rest.find('/'), rest.size());
  auto authority = rest.substr(0, slash);
  auto path = rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (!is_path(path)) return wrong("its path must be plain, without a query or a fragment");
  server.base_path = path;

  bool is_valid_host = false;
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    if (end != std::string_view::npos) {
      server.host = authority.substr(1, end - 1);
      authority.remove_prefix(end + 1);
      is_valid_host = is_ipv6(server.host);
    }
  } else {
    const auto end = std::min(authority.find(':'), authority.size());
    server.host = authority.substr(0, end);
    authority.remove_prefix(end);
    is_valid_host = is_name(server.host);
  }
  if (!is_valid_host) return wrong("its host is neither a name nor an address");

  server.port = server.tls ? "443" : "80";
  if (authority.empty()) return server;
  if (!authority.starts_with(':') || !core::is_port(authority.substr(1)))
    return wrong("its port must be a number from 1 to 65535");
  server.port = authority.substr(1);
  return server;
}

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (is_letter_or_digit(c) || std::string_view("-._~").contains(c))
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace evictd::kube
