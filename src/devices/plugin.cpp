#include "devices/plugin.hpp"

#include <fmt/format.h>
#include <grpcpp/create_channel_posix.h>

#include <utility>

#include "core/duration.hpp"
#include "core/printable.hpp"
#include "cri/code_name.hpp"
#include "cri/local_channel.hpp"

namespace asio = boost::asio;

namespace evictd::devices {
namespace {

using Stub = ::v1beta1::DevicePlugin::StubInterface;

/// In the form of Go's clients, whose words kubelets pass on.
Error error_of_call(const grpc::Status& status, std::chrono::milliseconds deadline) {
  const auto why = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
                       ? fmt::format("no answer within {}", core::to_string(deadline))
                       : core::printable(status.error_message());
  return {fmt::format("rpc error: code = {} desc = {}", cri::name_of(status.error_code()), why)};
}

}  // namespace

Plugin::Plugin(asio::any_io_executor reactor, grpc::CompletionQueue& queue, std::string resource,
               os::FileDescriptor connection)
    : reactor_(std::move(reactor)),
      queue_(queue),
      resource_(std::move(resource)),
      channel_(grpc::CreateCustomInsecureChannelFromFd("device-plugin", connection.release(),
                                                       cri::local_channel_arguments())),
      stub_(::v1beta1::DevicePlugin::NewStub(channel_)) {}

void Plugin::close() {
  if (std::exchange(closed_, true)) return;
  in_flight_->cancel_all();
  stub_.reset();
  channel_.reset();
}

template <class Request, class Response>
Plugin::Answer<Response> Plugin::call(Self self, cri::Method<Stub, Request, Response> method, Request request,
                                      std::chrono::milliseconds deadline) {
  if (self->closed_) co_return fail(fmt::format("endpoint of {} has been stopped", self->resource_));
  auto prepare = [stub = self->stub_.get(), method, queue = &self->queue_](auto* context, const auto& asked) {
    return (stub->*method)(context, asked, queue);
  };
  auto answer =
      co_await cri::async_call<Response>(self->reactor_, self->in_flight_, std::move(request), deadline, prepare);
  if (answer.status.ok()) co_return std::move(answer.response);
  co_return std::unexpected(error_of_call(answer.status, deadline));
}

Plugin::Answer<::v1beta1::DevicePluginOptions> Plugin::ask_options(Self self, std::chrono::milliseconds deadline) {
  return call(std::move(self), &Stub::PrepareAsyncGetDevicePluginOptions, ::v1beta1::Empty{}, deadline);
}

Plugin::Answer<::v1beta1::PreferredAllocationResponse> Plugin::prefer(Self self,
                                                                      ::v1beta1::PreferredAllocationRequest request,
                                                                      std::chrono::milliseconds deadline) {
  return call(std::move(self), &Stub::PrepareAsyncGetPreferredAllocation, std::move(request), deadline);
}

Plugin::Answer<::v1beta1::AllocateResponse> Plugin::allocate(Self self, ::v1beta1::AllocateRequest request,
                                                             std::chrono::milliseconds deadline) {
  return call(std::move(self), &Stub::PrepareAsyncAllocate, std::move(request), deadline);
}

Plugin::Answer<::v1beta1::PreStartContainerResponse> Plugin::pre_start(Self self,
                                                                       ::v1beta1::PreStartContainerRequest request,
                                                                       std::chrono::milliseconds deadline) {
  return call(std::move(self), &Stub::PrepareAsyncPreStartContainer, std::move(request), deadline);
}

asio::awaitable<std::optional<::v1beta1::ListAndWatchResponse>> Plugin::next_list(Self self) {
  using Step = cri::StreamStep<::v1beta1::Empty, ::v1beta1::ListAndWatchResponse>;
  if (self->closed_) co_return std::nullopt;
  if (self->list_ == nullptr) {
    self->list_ = std::make_shared<List>(self->in_flight_, ::v1beta1::Empty{});
    self->list_->reader =
        self->stub_->PrepareAsyncListAndWatch(&self->list_->context, self->list_->request, &self->queue_);
  }
  const auto list = self->list_;
  auto message = co_await cri::async_step<::v1beta1::Empty, ::v1beta1::ListAndWatchResponse>(Step::Kind::Read,
                                                                                             self->reactor_, list);
  co_return message;
}

}  // namespace evictd::devices
