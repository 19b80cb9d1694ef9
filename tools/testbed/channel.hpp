#pragma once
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "evictd.grpc.pb.h"
#include "testbed/failure.hpp"

namespace testbed {

/// A connection of its own to a socket, "unix:PATH", that comes back soon after evictd or containerd does.
[[nodiscard]] std::shared_ptr<grpc::Channel> channel_to(const std::string& address);
/// The same to evictd, for who needs no more of it than the calls.
[[nodiscard]] std::unique_ptr<evictd::v1::EvictionService::Stub> agent_stub(const std::string& address);

/// The deadline of a call, and that it waits for a connection.
void prepare(grpc::ClientContext& context);

/// One blocking call: `call(*stub, &RuntimeService::Stub::Version, request)`. It waits for a connection, a minute at
/// most, and fails with the message of containerd or evictd.
template <class Stub, class Request, class Response>
Response call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
              const Request& request) {
  grpc::ClientContext context;
  prepare(context);
  Response response;
  if (const auto status = (stub.*method)(&context, request, &response); !status.ok())
    fail(Request::descriptor()->name() + ": " + status.error_message());
  return response;
}

}  // namespace testbed
