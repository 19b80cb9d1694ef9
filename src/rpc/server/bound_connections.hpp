#pragma once
#include <grpcpp/server_builder.h>

#include <chrono>

namespace evictd::rpc {

/// Has the server keep no connection whose peer is gone or stuck, nor one without any call for `longest_idle`.
void bound_connections(grpc::ServerBuilder& builder, std::chrono::milliseconds longest_idle);

}  // namespace evictd::rpc
