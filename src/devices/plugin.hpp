#pragma once
#include <deviceplugin.pb.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "devices/registration.hpp"
#include "os/file_descriptor.hpp"
#include "rpc/connection.hpp"
#include "rpc/exchange.hpp"

namespace evictd::devices {

/// One plugin that has registered: its connection, and the calls over it. Another connection is another plugin. On the
/// reactor; what is under way shares it.
class Plugin {
 public:
  Plugin(const boost::asio::any_io_executor& reactor, Registration registration, os::FileDescriptor connection);
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  [[nodiscard]] const Registration& registration() const { return registration_; }
  [[nodiscard]] const std::string& resource() const { return registration_.resource; }

  /// Ends all calls and the connection. Later calls fail.
  void close();
  /// Ends the stream of lists; calls under way go on. For one whose server takes no more of them.
  void end_lists();

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

  /// Its server wants no new calls over this connection (gRPC: GOAWAY, as at the connection's greatest age); those
  /// under way go on.
  [[nodiscard]] bool is_refused() const { return !connection_->is_open() && !connection_->has_ended(); }
  /// Completes once no new call can be made, since it is refused or gone. It may take for ever.
  static boost::asio::awaitable<void> until_lost(Self self);

 private:
  Registration registration_;
  std::shared_ptr<rpc::Connection> connection_;
  std::shared_ptr<rpc::Exchange> list_;  ///< null before the first next_list()
  ::v1beta1::DevicePluginOptions options_;
  bool closed_ = false;

  template <class Response>
  static Answer<Response> call(Self self, std::string_view method, std::string request,
                               std::chrono::milliseconds deadline);
};

}  // namespace evictd::devices
