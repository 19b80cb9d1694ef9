#pragma once
#include <evictd.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace testbed {

/// A connection of its own to evictd's socket, "unix:PATH", that comes back soon after evictd does.
[[nodiscard]] std::shared_ptr<grpc::Channel> agent_channel(const std::string& address);
/// The same for who needs no more of it than the calls.
[[nodiscard]] std::unique_ptr<evictd::v1::EvictionService::Stub> agent_stub(const std::string& address);

}  // namespace testbed
