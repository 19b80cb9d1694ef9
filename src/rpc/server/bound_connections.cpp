#include "rpc/server/bound_connections.hpp"

namespace evictd::rpc {
namespace {

/// Calls at the same time on one connection; a client holds back what is more. Every caller has its limit beside this
/// (call_budget.hpp), which bounds what is answered; this bounds what gRPC reads before it is known who asks.
constexpr int most_streams = 256;

}  // namespace

void bound_connections(grpc::ServerBuilder& builder, std::chrono::milliseconds longest_idle) {
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, most_streams);
  // A peer whose machine vanished, or one that greeted and does nothing else, does not answer a ping.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // 2 otherwise, and then no more
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, static_cast<int>(longest_idle.count()));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5'000);  // 2 minutes otherwise
}

}  // namespace evictd::rpc
