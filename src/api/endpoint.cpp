#include "api/endpoint.hpp"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>

#include <limits>
#include <thread>
#include <utility>

#include "rpc/server/bound_connections.hpp"
#include "rpc/server/grpc_end.hpp"

using namespace std::chrono_literals;

namespace evictd::api {
namespace {

/// Both are switches of the whole process, read by every builder after them.
void choose_standard_services() {
  grpc::EnableDefaultHealthCheckService(false);  // there is Health
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
}

/// A client that does without for so long connects again when it wants something.
constexpr std::chrono::milliseconds longest_idle_of_clients = 10min;

/// gRPC looks at a message's size when it has all of it, and at who sends it after that. The quota has it give up the
/// stream that fills it. It is for all connections of one way in, and twice what CallBudget lets be answered at a time,
/// so that whoever keeps to that never meets it.
constexpr std::size_t most_memory = std::size_t{256} << 20;

/// Threads for reflection, the only synchronous service, and for calls of services that are not there: one waits for
/// the next call, and each stream has one for as long as its client keeps it open. They are all that the quota counts.
/// A stream for which there is none is ended with RESOURCE_EXHAUSTED. There are few because each also keeps the last
/// message of its stream, parsed.
constexpr int most_threads = 5;

/// And gRPC inflates before it looks at a size: a client that compresses hears UNIMPLEMENTED, and nothing is inflated.
void bound_memory(grpc::ServerBuilder& builder) {
  grpc::ResourceQuota quota("API calls");
  quota.Resize(most_memory);
  quota.SetMaxThreads(most_threads);
  builder.SetResourceQuota(quota);
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP})
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

}  // namespace

Endpoint::Endpoint(std::unique_ptr<EvictionService> service, std::shared_ptr<grpc::ServerCredentials> credentials,
                   std::size_t largest_message)
    : service_(std::move(service)), health_({"", v1::EvictionService::service_full_name()}) {
  using Kind = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  choose_standard_services();
  grpc::ServerBuilder builder;
  if (credentials) acceptor_ = builder.experimental().AddExternalConnectionAcceptor(Kind::FROM_FD, credentials);
  builder.RegisterService(&service_->service());
  builder.RegisterService(&health_.service());
  queue_ = builder.AddCompletionQueue();
  // One idle thread is enough for reflection. It need not look around while it waits, which it would do every 10 s.
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::CQ_TIMEOUT_MSEC, std::numeric_limits<int>::max());
  builder.SetMaxReceiveMessageSize(static_cast<int>(largest_message));
  bound_memory(builder);
  rpc::bound_connections(builder, longest_idle_of_clients);
  server_ = builder.BuildAndStart();
  service_->listen(*queue_);
  health_.listen(*queue_);
  queue_thread_ = std::make_unique<rpc::CompletionThread>(*queue_, "API calls");
}

void Endpoint::take(os::FileDescriptor connection) {
  if (!acceptor_) return grpc::AddInsecureChannelFromFd(server_.get(), connection.release());
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = connection.release();
  acceptor_->HandleNewConnection(&parameters);
}

void Endpoint::set_serving(bool serving) { health_.set_serving(serving); }

void Endpoint::shutdown(std::chrono::system_clock::time_point deadline, const rpc::OpenSockets& clients) {
  rpc::shut_down(*server_, clients, deadline);
  // Every call has ended for gRPC. What that has some of them begin, a Finish behind a write that failed, say, must not
  // meet a queue that is shut down: gRPC ends the process then. It is a matter of microseconds.
  const auto give_up = std::chrono::steady_clock::now() + 1s;
  while ((service_->has_calls() || health_.has_calls()) && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(100us);
  queue_thread_.reset();
}

}  // namespace evictd::api
