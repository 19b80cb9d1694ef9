#include "app/api_server.hpp"

#include <fmt/format.h>
#include <grpc/support/log.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "os/log.hpp"
#include "os/tcp_address.hpp"
#include "os/unix_socket.hpp"

namespace evictd::app {
namespace {

Result<std::optional<api::TcpOptions>> tcp_options(const config::TcpApiSettings& tcp) {
  const std::array<std::pair<std::string_view, const std::string&>, 3> files{
      {{"certificateFile", tcp.certificate_file}, {"keyFile", tcp.key_file}, {"clientCaFile", tcp.client_ca_file}}};
  if (tcp.address.empty()) {
    for (const auto& [key, file] : files)
      if (!file.empty()) return fail(fmt::format("api.tcp.address is missing, and api.tcp.{} is given", key));
    if (!tcp.admins.empty() || !tcp.readers.empty())
      return fail("api.tcp.address is missing, and api.tcp.admins or api.tcp.readers is given");
    return std::nullopt;
  }
  auto address = os::parse_tcp_address(tcp.address);
  if (!address) return fail(address.error(), "api.tcp.address");
  for (const auto& [key, file] : files)
    if (file.empty()) return fail(fmt::format("api.tcp.{} is missing: there is no api.tcp without mutual TLS", key));
  if (tcp.admins.empty() && tcp.readers.empty())
    return fail("api.tcp.admins and api.tcp.readers are empty: no client could do anything");
  // A slip here would open everything to everybody.
  if (std::ranges::find(tcp.admins, "*") != tcp.admins.end())
    return fail("api.tcp.admins: \"*\" is not a name: administrators are named one by one");
  api::TcpOptions options{.address = *std::move(address),
                          .tls = {.certificate_file = tcp.certificate_file,
                                  .key_file = tcp.key_file,
                                  .client_ca_file = tcp.client_ca_file,
                                  .admins = tcp.admins,
                                  .readers = tcp.readers}};
  if (auto checked = api::check_tls(options.tls); !checked) return std::unexpected(checked.error());
  return options;
}

/// gRPC writes a line for each TLS handshake that fails, so any client that reaches the port could fill the log. One a
/// minute says as much.
void log_less_of_grpc() {
  if (std::getenv("GRPC_VERBOSITY") != nullptr) return;  // the operator wants to see all of it
  gpr_set_log_function([](gpr_log_func_args* line) {
    using Clock = std::chrono::steady_clock;
    static std::atomic<Clock::duration> next = Clock::duration::zero();
    const auto now = Clock::now().time_since_epoch();
    auto due = next.load();
    if (now < due || !next.compare_exchange_strong(due, now + std::chrono::minutes(1))) return;
    os::log_warning("gRPC: {}", line->message);
  });
}

}  // namespace

Result<api::ServerOptions> api_server_options(const config::AgentConfiguration& settings) {
  const auto& group = settings.api.group;
  if (!group.empty())
    if (const auto found = os::find_group(group); !found) return fail(found.error(), "api.group");
  auto tcp = tcp_options(settings.tcp_api);
  if (!tcp) return std::unexpected(tcp.error());
  const auto files = config::runtime_files(settings);
  return api::ServerOptions{.socket = files.socket,
                            .admin_socket = files.admin_socket,
                            .group = group,
                            .tcp = *std::move(tcp),
                            .subscribers = static_cast<std::size_t>(settings.api.subscribers)};
}

Result<void> start(api::Server& server, const api::ServerOptions& options) {
  if (auto made = os::make_directory_of(options.socket); !made) return fail(made.error(), "runtimeDirectory");
  log_less_of_grpc();
  if (auto started = server.start(); !started) return started;
  if (options.tcp)
    os::log_info("the API listens on {}:{} with mutual TLS", options.tcp->address.host, options.tcp->address.port);
  server.set_serving(true);
  return {};
}

}  // namespace evictd::app
