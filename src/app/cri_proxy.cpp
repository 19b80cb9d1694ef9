#include "app/cri_proxy.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "config/agent_configuration.hpp"
#include "core/error.hpp"
#include "cri/endpoint.hpp"
#include "host/end_deadline.hpp"
#include "host/self_protection.hpp"
#include "host/systemd.hpp"
#include "os/exit_code.hpp"
#include "os/log.hpp"
#include "os/unix_socket.hpp"
#include "proxy/options.hpp"
#include "proxy/server.hpp"

namespace asio = boost::asio;

namespace evictd::app {
namespace {

/// Calls are cut off after this. Most take milliseconds; streams have no end of their own.
constexpr std::chrono::seconds longest_call{5};

/// Then it ends whatever its clients do: gRPC waits for one that does not read without an end.
constexpr std::chrono::seconds ends_within{8};

proxy::Undecided when_undecided(config::Undecided undecided) {
  switch (undecided) {
    case config::Undecided::Admit: return proxy::Undecided::Admit;
    case config::Undecided::Reject: return proxy::Undecided::Reject;
  }
  return proxy::Undecided::Admit;
}

Result<proxy::ServerOptions> server_options(const config::AgentConfiguration& settings) {
  const auto& own = settings.cri_proxy;
  const auto runtime = cri::parse_endpoint(settings.cri.endpoint);
  if (!runtime) return fail(runtime.error(), "cri.endpoint");
  const auto sockets = config::runtime_files(settings);
  if (*runtime == "unix://" + sockets.cri_socket)
    return fail(fmt::format("cri.endpoint: {} is evictd cri-proxy's own (runtimeDirectory)", sockets.cri_socket));
  const bool tells = settings.eviction.trim == config::Trim::All;
  // A pod that is started is given what it asked for: that is a change.
  return proxy::ServerOptions{.socket = sockets.cri_socket,
                              .runtime = *runtime,
                              .gate = {.agent_socket = sockets.admin_socket,
                                       .undecided = when_undecided(own.undecided),
                                       .timeout = std::chrono::ceil<std::chrono::milliseconds>(own.timeout),
                                       .pressure_socket = tells ? sockets.pressure_socket : std::string{},
                                       .warn = [](const std::string& line) { os::log_warning("{}", line); }}};
}

}  // namespace

int run_cri_proxy(const ConfigurationFiles& files) {
  os::log_in_background();
  const auto configuration = load_configuration(files);
  if (!configuration) return os::wrong_usage(configuration.error());
  const auto& settings = configuration->agent;
  os::set_log_level(log_level(settings.log.level));
  const auto options = server_options(settings);
  if (!options) return os::wrong_usage(options.error());

  if (const auto refusal = host::protect_self()) os::log_warning("{}", *refusal);
  asio::io_context reactor{1};
  host::ServiceManager service{reactor.get_executor()};
  asio::signal_set signals{reactor, SIGINT, SIGTERM};
  proxy::Server server{*options};
  if (auto made = os::make_directory_of(options->socket); !made) return os::failed(made.error().in("runtimeDirectory"));
  if (auto listening = server.start(); !listening) return os::failed(listening.error().in("runtimeDirectory"));
  os::log_info("evictd {} passes calls on {} to {} and asks the agent at {} before a pod starts; {} while it is away",
               EVICTD_VERSION, options->socket, options->runtime, options->gate.agent_socket,
               options->gate.undecided == proxy::Undecided::Admit ? "all pods start" : "no pod starts");
  constexpr std::string_view scheme = "unix://";
  std::error_code error;
  if (!std::filesystem::exists(options->runtime.substr(scheme.size()), error))
    os::log_warning("no container runtime at {} yet: until it is there calls end with UNAVAILABLE", options->runtime);
  if (const auto locked = host::lock_memory(); !locked) os::log_warning("{}", locked.error().message);
  service.ready();

  signals.async_wait([&](boost::system::error_code error, int) {
    if (error) return;
    service.stopping();
    server.shutdown(longest_call);
    reactor.stop();
  });
  host::end_within(ends_within);
  reactor.run();
  return 0;
}

}  // namespace evictd::app
