#include "api/server.hpp"

#include <fmt/format.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <utility>
#include <vector>

#include "api/eviction_service.hpp"
#include "api/unix_socket.hpp"

namespace evictd::api {

struct Server::Parts {
  Parts(ServerOptions given, EventLog& log, Handlers handlers)
      : options(std::move(given)),
        calls(std::make_shared<OpenCalls>()),
        streams(std::make_shared<EventStreams>(
            log, StreamLimits{.write_timeout = options.write_timeout, .subscribers = options.subscribers},
            handlers.status, options.warn)),
        services{std::make_shared<EvictionService>(log, streams, calls, std::move(handlers),
                                                   [](const grpc::CallbackServerContext&) { return Caller{}; })} {}

  ServerOptions options;
  std::shared_ptr<OpenCalls> calls;
  std::shared_ptr<EventStreams> streams;
  std::vector<std::shared_ptr<grpc::Service>> services;
  std::unique_ptr<grpc::Server> server;
};

namespace {

/// Both are switches of the whole process, read by every builder after them.
void enable_standard_services() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
}

}  // namespace

Server::Server(ServerOptions options, EventLog& log, Handlers handlers)
    : parts_(std::make_unique<Parts>(std::move(options), log, std::move(handlers))) {}

Server::~Server() { shutdown(); }

void Server::add(std::shared_ptr<grpc::Service> service) { parts_->services.push_back(std::move(service)); }

Result<void> Server::start() {
  const ServerOptions& options = parts_->options;
  // What can be wrong is found before the first client could get in.
  if (!options.group.empty())
    if (const auto group = find_group(options.group); !group) return fail(group.error(), "api.group");
  if (auto claimed = claim_socket_path(options.socket); !claimed) return fail(claimed.error(), "api.socket");

  enable_standard_services();
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + options.socket, grpc::InsecureServerCredentials());
  for (const auto& service : parts_->services) builder.RegisterService(service.get());
  // Only reflection is a synchronous service: one thread waits for it, and one more while it is used.
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  // A pod may be asked about as large as containerd itself would take it, which is 16 MiB; gRPC's default is 4.
  builder.SetMaxReceiveMessageSize(17 << 20);
  {
    const ClosedUmask nobody_yet;
    parts_->server = builder.BuildAndStart();
  }
  if (!parts_->server) return fail(fmt::format("api.socket: {}: gRPC could not listen on it", options.socket));

  set_serving(false);
  if (auto admitted = admit_to_socket(options.socket, options.group, options.mode); !admitted) {
    shutdown();
    return fail(admitted.error(), "api.socket");
  }
  return {};
}

void Server::set_serving(bool serving) {
  if (!parts_->server) return;
  auto* health = parts_->server->GetHealthCheckService();
  health->SetServingStatus("", serving);
  health->SetServingStatus(v1::EvictionService::service_full_name(), serving);
}

void Server::shutdown(std::chrono::milliseconds timeout) {
  if (!parts_->server) return;
  set_serving(false);
  parts_->streams->close();
  parts_->calls->abort_all(shutting_down());
  parts_->server->Shutdown(std::chrono::system_clock::now() + timeout);
  parts_->server->Wait();
  parts_->server.reset();
}

}  // namespace evictd::api
