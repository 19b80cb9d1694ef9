#include "devices/plugin.hpp"

#include <fmt/format.h>
#include <grpcpp/support/status.h>

#include <utility>

#include "core/duration.hpp"
#include "core/printable.hpp"
#include "rpc/call.hpp"
#include "rpc/code_name.hpp"

namespace asio = boost::asio;

namespace evictd::devices {
namespace {

/// In bytes: as the kubelet's gRPC takes it.
constexpr std::size_t largest_message = 4 << 20;

std::string path_of(std::string_view method) { return fmt::format("/v1beta1.DevicePlugin/{}", method); }

/// In the form of Go's clients, whose words kubelets pass on.
Error error_of_call(const grpc::Status& status, std::chrono::milliseconds deadline) {
  const auto why = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
                       ? fmt::format("no answer within {}", core::to_string(deadline))
                       : core::printable(status.error_message());
  return {fmt::format("rpc error: code = {} desc = {}", rpc::name_of(status.error_code()), why)};
}

}  // namespace

Plugin::Plugin(const asio::any_io_executor& reactor, Registration registration, os::FileDescriptor connection)
    : registration_(std::move(registration)), connection_(rpc::Connection::begin(reactor, std::move(connection))) {}

void Plugin::close() {
  closed_ = true;
  connection_->close();
}

void Plugin::end_lists() {
  if (list_ != nullptr) connection_->cancel(list_);
}

template <class Response>
Plugin::Answer<Response> Plugin::call(Self self, std::string_view method, std::string request,
                                      std::chrono::milliseconds deadline) {
  if (self->closed_) co_return fail(fmt::format("endpoint of {} has been stopped", self->resource()));
  auto answer = co_await rpc::call(self->connection_, path_of(method), std::move(request), deadline, largest_message);
  Response response;
  if (answer.status.ok() && !response.ParseFromString(answer.message))
    answer.status = {grpc::StatusCode::INTERNAL, "the plugin answered with what is no message"};
  if (answer.status.ok()) co_return response;
  co_return std::unexpected(error_of_call(answer.status, deadline));
}

Plugin::Answer<::v1beta1::DevicePluginOptions> Plugin::ask_options(Self self, std::chrono::milliseconds deadline) {
  return call<::v1beta1::DevicePluginOptions>(std::move(self), "GetDevicePluginOptions", "", deadline);
}

Plugin::Answer<::v1beta1::PreferredAllocationResponse> Plugin::prefer(Self self,
                                                                      ::v1beta1::PreferredAllocationRequest request,
                                                                      std::chrono::milliseconds deadline) {
  return call<::v1beta1::PreferredAllocationResponse>(std::move(self), "GetPreferredAllocation",
                                                      request.SerializeAsString(), deadline);
}

Plugin::Answer<::v1beta1::AllocateResponse> Plugin::allocate(Self self, ::v1beta1::AllocateRequest request,
                                                             std::chrono::milliseconds deadline) {
  return call<::v1beta1::AllocateResponse>(std::move(self), "Allocate", request.SerializeAsString(), deadline);
}

Plugin::Answer<::v1beta1::PreStartContainerResponse> Plugin::pre_start(Self self,
                                                                       ::v1beta1::PreStartContainerRequest request,
                                                                       std::chrono::milliseconds deadline) {
  return call<::v1beta1::PreStartContainerResponse>(std::move(self), "PreStartContainer", request.SerializeAsString(),
                                                    deadline);
}

asio::awaitable<std::optional<::v1beta1::ListAndWatchResponse>> Plugin::next_list(Self self) {
  if (self->closed_) co_return std::nullopt;
  if (self->list_ == nullptr)
    self->list_ = rpc::open_stream(*self->connection_, path_of("ListAndWatch"), "", largest_message);
  const auto bytes = co_await rpc::next_message(self->connection_, self->list_);
  std::optional<::v1beta1::ListAndWatchResponse> list;
  if (bytes && !list.emplace().ParseFromString(*bytes)) list.reset();
  co_return list;
}

asio::awaitable<void> Plugin::until_lost(Self self) { co_await self->connection_->until_lost(); }

}  // namespace evictd::devices
