#pragma once
#include <deviceplugin.grpc.pb.h>
#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "cri/call.hpp"
#include "cri/in_flight.hpp"
#include "cri/stream_call.hpp"
#include "os/file_descriptor.hpp"

// It brings in gRPC's headers: for the sources of this folder.
namespace evictd::devices {

/// One plugin that has registered: its connection, which is never made anew (a plugin that starts again registers
/// again), and the calls over it. On the reactor; what is under way shares it.
class Plugin {
 public:
  /// The queue has a cri::CompletionThread, which outlives what is under way.
  Plugin(boost::asio::any_io_executor reactor, grpc::CompletionQueue& queue, std::string resource,
         os::FileDescriptor connection);
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  [[nodiscard]] const std::string& resource() const { return resource_; }

  /// Ends all calls and the connection. Later calls fail.
  void close();
  /// Blocks until gRPC has let go of everything, which after close() takes well below a millisecond.
  void wait_until_idle() { in_flight_->wait_until_returned(); }

  template <class Response>
  using Answer = boost::asio::awaitable<Result<Response>>;
  using Self = std::shared_ptr<Plugin>;

  static Answer<::v1beta1::DevicePluginOptions> ask_options(Self self, std::chrono::milliseconds deadline);
  static Answer<::v1beta1::PreferredAllocationResponse> prefer(Self self, ::v1beta1::PreferredAllocationRequest request,
                                                               std::chrono::milliseconds deadline);
  static Answer<::v1beta1::AllocateResponse> allocate(Self self, ::v1beta1::AllocateRequest request,
                                                      std::chrono::milliseconds deadline);
  static Answer<::v1beta1::PreStartContainerResponse> pre_start(Self self, ::v1beta1::PreStartContainerRequest request,
                                                                std::chrono::milliseconds deadline);

  /// What it said of itself last.
  [[nodiscard]] const ::v1beta1::DevicePluginOptions& options() const { return options_; }
  void keep_options(::v1beta1::DevicePluginOptions options) { options_ = std::move(options); }

  /// The next list of all devices; one call at a time. It may take for ever. Absent: the plugin has gone, was closed,
  /// or sent what is no list.
  static boost::asio::awaitable<std::optional<::v1beta1::ListAndWatchResponse>> next_list(Self self);

 private:
  using List = cri::StreamCall<::v1beta1::Empty, ::v1beta1::ListAndWatchResponse>;

  boost::asio::any_io_executor reactor_;
  grpc::CompletionQueue& queue_;
  std::string resource_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<::v1beta1::DevicePlugin::StubInterface> stub_;
  std::shared_ptr<cri::InFlight> in_flight_ = std::make_shared<cri::InFlight>();
  std::shared_ptr<List> list_;
  ::v1beta1::DevicePluginOptions options_;
  bool closed_ = false;

  template <class Request, class Response>
  static Answer<Response> call(Self self, cri::Method<::v1beta1::DevicePlugin::StubInterface, Request, Response> method,
                               Request request, std::chrono::milliseconds deadline);
};

}  // namespace evictd::devices
