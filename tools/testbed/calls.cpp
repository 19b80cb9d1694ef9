#include "testbed/calls.hpp"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>

#include <string>
#include <utility>

#include "testbed/channel.hpp"
#include "testbed/failure.hpp"

namespace testbed {
namespace {

using google::protobuf::Message;

/// The one of the service in its file that has it.
std::string path_of_call(const Message& request) {
  const auto& type = *request.GetDescriptor();
  const auto method = type.name().substr(0, type.name().rfind("Request"));
  for (int i = 0; i < type.file()->service_count(); ++i)
    if (const auto& service = *type.file()->service(i); service.FindMethodByName(method) != nullptr)
      return fmt::format("/{}/{}", service.full_name(), method);
  fail(fmt::format("there is no call with a {}", type.name()));
}

}  // namespace

Calls::Calls(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {}

grpc::Status Calls::make(const Message& request, Message& response) const {
  grpc::TemplatedGenericStub<Message, Message> stub(channel_);
  grpc::ClientContext context;
  prepare(context);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, path_of_call(request), request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

void Calls::answer(const Message& request, Message& response) const {
  if (const auto status = make(request, response); !status.ok())
    fail(fmt::format("{}: {}", request.GetDescriptor()->name(), status.error_message()));
}

}  // namespace testbed
