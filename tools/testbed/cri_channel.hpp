#pragma once
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <memory>
#include <string_view>

namespace testbed {

/// A channel to the CRI socket that comes back soon after containerd does.
[[nodiscard]] std::shared_ptr<grpc::Channel> cri_channel(const std::filesystem::path& socket);

/// The deadline of a call, and that it waits for a connection.
void prepare(grpc::ClientContext& context);
/// Fails, naming the request, unless the call went well.
void expect_ok(const grpc::Status& status, std::string_view request);

/// One blocking CRI call: `call(*stub, &RuntimeService::Stub::Version, request)`. It waits for a connection, a minute
/// at most, and fails with containerd's message.
template <class Stub, class Request, class Response>
Response call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
              const Request& request) {
  grpc::ClientContext context;
  prepare(context);
  Response response;
  expect_ok((stub.*method)(&context, request, &response), Request::descriptor()->name());
  return response;
}

}  // namespace testbed
