#include "app/device_plugins.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "async/deadline_thread.hpp"
#include "devices/plugin_directory.hpp"
#include "os/log.hpp"

namespace evictd::app {
namespace {

/// Looking into a directory of some sockets takes a millisecond. A disk that does not answer must not keep evictd from
/// guarding the node.
constexpr std::chrono::milliseconds patience_with_directory{3000};

}  // namespace

std::unique_ptr<DevicePlugins> DevicePlugins::make(const boost::asio::any_io_executor& reactor,
                                                   const config::AgentConfiguration& settings,
                                                   std::set<std::string> served_before) {
  const auto& directory = settings.device_plugins.directory;
  if (directory.empty()) return nullptr;
  auto opened = async::within("opening the directory of device plugins", patience_with_directory,
                              [directory] { return devices::open_registration_socket(directory); });
  Result<os::ListeningSocket> socket = opened ? *std::move(opened) : fail(directory + ": the disk does not answer");
  if (!socket) {
    os::log_warning("devicePlugins.directory: {}: no device plugin is served", socket.error().message);
    return nullptr;
  }
  devices::PluginsOptions options{.directory = directory, .served_before = std::move(served_before)};
  for (const auto& device : settings.admission.devices) options.configured.insert(device.resource);
  os::log_info("device plugins register at {}/{}", directory, devices::registration_socket);
  return std::make_unique<DevicePlugins>(reactor, std::move(options), *std::move(socket));
}

DevicePlugins::DevicePlugins(const boost::asio::any_io_executor& reactor, devices::PluginsOptions options,
                             os::ListeningSocket socket)
    : plugins_{reactor, std::move(options)},
      server_{reactor, std::move(socket),
              [this](devices::Registration registration) { return plugins_.add(std::move(registration)); }} {}

}  // namespace evictd::app
