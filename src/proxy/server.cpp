#include "proxy/server.hpp"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>

#include <thread>
#include <utility>
#include <vector>

#include "os/unix_socket.hpp"
#include "proxy/forwarded_call.hpp"
#include "proxy/gate.hpp"
#include "proxy/local_channel.hpp"
#include "proxy/running_calls.hpp"

namespace evictd::proxy {
namespace {

/// gRPC's default is 8 KiB; an error message beyond it would lose the whole status. Go's own limit is this one.
constexpr int metadata_limit = 16 << 20;

grpc::ChannelArguments runtime_arguments() {
  auto arguments = local_channel_arguments();
  // The limits are the client's and the runtime's own.
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, metadata_limit);
  // What is tried again is the client's to say; and messages would be kept for it.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return arguments;
}

/// Reflection adds itself to every server of a program that links it. Here it would hide the runtime's.
class NoPlugins final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override { plugins->clear(); }
};

/// A connection that ends right behind the last answer may break before the client has read it: gRPC closes a
/// connection on which it cannot write, whatever is still to be read.
constexpr std::chrono::milliseconds time_to_read{100};

/// The call of a client that came too late.
class Refused final : public grpc::ServerGenericBidiReactor {
 public:
  Refused() { Finish({grpc::StatusCode::UNAVAILABLE, "evictd cri-proxy shuts down"}); }
  void OnDone() override { delete this; }
};

class EveryMethod final : public grpc::CallbackGenericService {
 public:
  EveryMethod(const std::shared_ptr<grpc::Channel>& runtime, Gate& gate) : runtime_(runtime), gate_(gate) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* client) override {
    auto ticket = calls_.begin();
    if (!ticket) return new Refused;
    return forward(*client, runtime_, gate_, std::move(ticket));
  }
  [[nodiscard]] RunningCalls& calls() { return calls_; }

 private:
  grpc::GenericStub runtime_;
  Gate& gate_;
  RunningCalls calls_;
};

}  // namespace

struct Server::Parts {
  explicit Parts(ServerOptions given)
      : options(std::move(given)),
        runtime(grpc::CreateCustomChannel(options.runtime, grpc::InsecureChannelCredentials(), runtime_arguments())),
        gate(options.gate),
        service(runtime, gate) {}

  ServerOptions options;
  std::shared_ptr<grpc::Channel> runtime;
  Gate gate;
  EveryMethod service;
  std::unique_ptr<grpc::Server> server;
};

Server::Server(ServerOptions options) : parts_(std::make_unique<Parts>(std::move(options))) {}

Server::~Server() { shutdown(std::chrono::milliseconds{0}); }

Result<void> Server::start() {
  const auto& socket = parts_->options.socket;
  if (auto claimed = os::claim_socket_path(socket); !claimed) return claimed;

  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&parts_->service);
  builder.SetOption(std::make_unique<NoPlugins>());
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, metadata_limit);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // see local_channel_arguments
  {
    const os::ClosedUmask nobody_yet;
    parts_->server = builder.BuildAndStart();
  }
  if (!parts_->server) return fail(fmt::format("{}: gRPC could not listen on it", socket));
  if (auto admitted = os::admit_to_socket(socket, "", 0600); !admitted) {
    shutdown(std::chrono::milliseconds{0});
    return admitted;
  }
  parts_->runtime->GetState(true);  // begin to connect, so that the first call need not wait for it
  parts_->gate.warm_up();
  return {};
}

void Server::shutdown(std::chrono::milliseconds patience) {
  if (!parts_->server) return;
  auto& calls = parts_->service.calls();
  calls.close();
  if (calls.wait_until_none(patience)) std::this_thread::sleep_for(time_to_read);
  parts_->server->Shutdown(std::chrono::system_clock::now());  // cancels the others
  parts_->server->Wait();
  parts_->server.reset();
}

}  // namespace evictd::proxy
