#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/temporary_directory.hpp"
#include "proxy/raw_client.hpp"
#include "proxy/raw_server.hpp"
#include "proxy/server.hpp"
#include "proxy/stand_in_agent.hpp"

namespace evictd::test {

/// A proxy between a client and a stand-in for the runtime that answers by a function of the test. There is a stand-in
/// for the agent only where the test says what it answers.
class Proxied {
 public:
  struct Options {
    StandInAgent::Answer agent{};
    RawServer::Handler raw_agent{};  ///< in its stead
    proxy::Undecided undecided = proxy::Undecided::Admit;
    std::chrono::milliseconds timeout = std::chrono::minutes{1};
    std::string pressure_socket{};
  };

  explicit Proxied(RawServer::Handler handler) : Proxied(std::move(handler), Options{}) {}
  Proxied(RawServer::Handler handler, const Options& options)
      : handler_(std::move(handler)), server_(proxy_options(options)) {
    if (options.agent) start_agent(options.agent);
    if (options.raw_agent) raw_agent_.emplace(agent_socket, options.raw_agent);
    start_runtime();
    const auto started = server_.start();
    REQUIRE_MESSAGE(started.has_value(), (started ? "" : started.error().message));
    channel = raw_channel(socket);
  }

  void start_agent(const StandInAgent::Answer& answer) { agent_.emplace(agent_socket, answer); }
  [[nodiscard]] StandInAgent& agent() { return *agent_; }
  void start_runtime() { runtime_.emplace(runtime_socket, handler_); }
  void stop_runtime() { runtime_.reset(); }
  [[nodiscard]] RawServer& runtime() { return *runtime_; }
  [[nodiscard]] proxy::Server& server() { return server_; }
  [[nodiscard]] std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

  Exchanged exchange(const std::string& method, const std::string& request,
                     const RawClientCall::Options& options = {}) {
    return test::exchange(channel, method, request, options);
  }

 private:
  proxy::ServerOptions proxy_options(const Options& options) {
    return {.socket = socket,
            .runtime = "unix://" + runtime_socket,
            .gate = {.agent_socket = agent_socket,
                     .undecided = options.undecided,
                     .timeout = options.timeout,
                     .pressure_socket = options.pressure_socket,
                     .warn = [this](const std::string& line) {
                       const std::lock_guard lock(mutex_);
                       warnings_.push_back(line);
                     }}};
  }

  TemporaryDirectory directory_;

 public:
  const std::string socket = directory_ / "cri.sock";
  const std::string runtime_socket = directory_ / "runtime.sock";
  const std::string agent_socket = directory_ / "admin.sock";
  std::shared_ptr<grpc::Channel> channel;

 private:
  RawServer::Handler handler_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  std::optional<StandInAgent> agent_;
  std::optional<RawServer> raw_agent_;
  std::optional<RawServer> runtime_;
  proxy::Server server_;
};

}  // namespace evictd::test
