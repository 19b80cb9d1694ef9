#include "kube/http_hook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/ssl/context.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/number.hpp"
#include "core/printable.hpp"
#include "kube/exchange.hpp"
#include "kube/identity.hpp"
#include "kube/name_lookups.hpp"
#include "kube/transport.hpp"
#include "kube/url.hpp"

namespace asio = boost::asio;

namespace evictd::kube {
namespace {

constexpr std::size_t largest_hook_answer = std::size_t{10} << 10;

bool is_same_field(std::string_view left, std::string_view right) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::ranges::equal(left, right, {}, lower, lower);
}

/// Ours to write: they say where a message ends, and whom it is for.
bool is_left_out(std::string_view name) {
  constexpr std::array<std::string_view, 5> names{"host", "content-length", "transfer-encoding", "trailer",
                                                  "connection"};
  return std::ranges::any_of(names, [&](auto ours) { return is_same_field(ours, name); });
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// RFC 9110, 5.1 and 5.5.
bool is_field_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

bool is_field_value(std::string_view value) {
  return std::ranges::none_of(value, [](char c) { return is_control(c) && c != '\t'; });
}

bool is_host(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](char c) { return c > ' ' && c < '\x7f'; });
}

/// What a path cannot hold as it is becomes %XX; a fragment is not for the server.
std::string target_of_hook(std::string_view path) {
  path = path.substr(0, path.find('#'));
  std::string target;
  if (!path.starts_with('/')) target = "/";
  for (const char c : path) {
    const bool as_it_is = c > ' ' && c < '\x7f' && !std::string_view("\"<>\\^`{|}").contains(c);
    if (as_it_is)
      target += c;
    else
      target += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return target;
}

/// What the hook says itself; nothing where it does not.
std::optional<std::string> own_field(const core::HttpGetHook& hook, std::string_view name) {
  const auto found =
      std::ranges::find_if(hook.headers, [&](const auto& header) { return is_same_field(header.name, name); });
  if (found == hook.headers.end()) return std::nullopt;
  return found->value;
}

std::unexpected<Error> no_hook(std::string_view what, std::string_view text) {
  return fail(fmt::format("its {} \"{}\" is none", what, core::printable(core::beginning(text, 100))));
}

Result<void> check_hook(const core::HttpGetHook& hook, std::string_view host) {
  if (!is_host(host)) return no_hook("host", host);
  if (!core::is_port(hook.port)) return no_hook("port", hook.port);
  if (std::ranges::any_of(hook.path, is_control)) return no_hook("path", hook.path);
  for (const auto& [name, value] : hook.headers)
    if (!is_field_name(name) || !is_field_value(value)) return no_hook("header", name);
  return {};
}

/// Whoever serves the pod has a certificate of its own making, as a rule.
IdentityPtr unverified_identity() {
  static const auto identity = [] {
    auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
    context->set_verify_mode(asio::ssl::verify_none);
    return std::make_shared<const Identity>(Identity{.tls = std::move(context)});
  }();
  return identity;
}

/// More than a pod has containers, so that the hooks of one do not keep those of others waiting. A look-up is a thread
/// until the system's resolver gives up, by default after 10 s for each server that it asks.
const NameLookups& hook_lookups() {
  constexpr std::size_t most = 512;
  static const NameLookups lookups{most};
  return lookups;
}

asio::awaitable<Result<int>> status_of_hook(Transport& transport, const std::string& request, core::Instant end) {
  ResponseReader reader{ResponseLimits{.body = std::nullopt}};
  std::optional<int> status;
  std::size_t size = 0;
  auto done = co_await transport.write(request, end);
  while (done && !reader.is_done() && size <= largest_hook_answer) {
    const auto count = co_await transport.read_some(reader.space(), end);
    if (count)
      done = reader.received(*count);
    else
      done = std::unexpected(count.error());
    if (!reader.has_head()) continue;
    const auto piece = reader.take();
    status = piece.status;
    size += piece.body.size();
  }
  if (status) co_return *status;
  co_return std::unexpected(done.error());
}

}  // namespace

Result<std::string> http_hook_request(const core::HttpGetHook& hook, const std::string& host) {
  if (const auto checked = check_hook(hook, host); !checked) return std::unexpected(checked.error());
  // A Go client names the port in any case.
  const auto authority = host.contains(':') ? fmt::format("[{}]:{}", host, hook.port) : host + ":" + hook.port;
  const auto own_host = own_field(hook, "host").value_or("");
  auto text = fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n", target_of_hook(hook.path),
                          own_host.empty() ? authority : own_host);
  if (!own_field(hook, "user-agent")) text += "User-Agent: kube-lifecycle/1.36 (evictd)\r\n";
  const auto accept = own_field(hook, "accept");
  if (!accept) text += "Accept: */*\r\n";
  for (const auto& [name, value] : hook.headers) {
    const bool is_no_accept = is_same_field(name, "accept") && accept->empty();
    if (!is_left_out(name) && !is_no_accept) text += fmt::format("{}: {}\r\n", name, value);
  }
  return text + "Connection: close\r\n\r\n";
}

asio::awaitable<Result<int>> run_http_hook(asio::any_io_executor reactor, core::HttpGetHook hook, std::string address,
                                           core::Instant end) {
  const auto host = hook.host.empty() ? address : hook.host;
  const auto request = http_hook_request(hook, host);
  if (!request) co_return std::unexpected(request.error());
  auto identity = hook.https ? unverified_identity() : std::make_shared<const Identity>();
  Server server{.tls = hook.https, .host = host, .port = hook.port};
  const auto transport = make_transport(reactor, hook_lookups(), std::move(server), {}, std::move(identity));
  const auto opened = co_await transport->open(end);
  if (!opened) co_return std::unexpected(opened.error());
  auto status = co_await status_of_hook(*transport, *request, end);
  transport->close();
  co_return status;
}

}  // namespace evictd::kube
