#pragma once
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "evictd.grpc.pb.h"

namespace testbed {

/// A connection of its own to a socket, "unix:PATH", that comes back soon after evictd or containerd does.
[[nodiscard]] std::shared_ptr<grpc::Channel> channel_to(const std::string& address);
/// The same to evictd, for who needs no more of it than the calls.
[[nodiscard]] std::unique_ptr<evictd::v1::EvictionService::Stub> agent_stub(const std::string& address);

/// The deadline of a call, and that it waits for a connection.
void prepare(grpc::ClientContext& context);

}  // namespace testbed
