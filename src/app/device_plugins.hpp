#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <set>
#include <string>

#include "app/configuration.hpp"
#include "devices/plugins.hpp"
#include "devices/registration_server.hpp"

namespace evictd::app {

/// Serves the node's device plugins, where no kubelet does. On the reactor.
class DevicePlugins {
 public:
  /// `served_before`: resources that plugins served before a restart. Null where the configuration has no directory for
  /// them. One that cannot be served is a warning: the node is guarded all the same. Plugins are heard once the reactor
  /// runs.
  [[nodiscard]] static std::unique_ptr<DevicePlugins> make(const boost::asio::any_io_executor& reactor,
                                                           const config::AgentConfiguration& settings,
                                                           std::set<std::string> served_before);

  DevicePlugins(const boost::asio::any_io_executor& reactor, devices::PluginsOptions options,
                os::ListeningSocket socket);

  [[nodiscard]] devices::Plugins& plugins() { return plugins_; }

 private:
  devices::Plugins plugins_;
  devices::RegistrationServer server_;  // hands over to the plugins
};

}  // namespace evictd::app
