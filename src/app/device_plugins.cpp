#include "app/device_plugins.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "async/deadline_thread.hpp"
#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "devices/plugin_directory.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::app {
namespace {

/// For a look at all processes, which take 10 ms a thousand.
constexpr std::chrono::milliseconds patience_with_processes{3000};

/// Looking into a directory of some sockets takes a millisecond. A disk that does not answer must not keep evictd from
/// guarding the node.
constexpr std::chrono::milliseconds patience_with_directory{3000};

}  // namespace

std::unique_ptr<DevicePlugins> DevicePlugins::make(const boost::asio::any_io_executor& reactor,
                                                   const Configuration& configuration,
                                                   std::set<std::string> served_before, node::KubeletLookout& kubelet,
                                                   KubeletPauses pauses) {
  const auto& settings = configuration.agent;
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
  auto made = std::make_unique<DevicePlugins>(reactor, std::move(options), *std::move(socket));
  if (configuration.written.device_plugins.directory == config::to_be_found)
    async::spawn_contained(reactor, watch(made->self_, kubelet, pauses), [](const std::string& reason) {
      os::log_error("a kubelet that comes is not noticed, whose device plugins these are then: {}", reason);
    });
  return made;
}

DevicePlugins::DevicePlugins(const boost::asio::any_io_executor& reactor, devices::PluginsOptions options,
                             os::ListeningSocket socket)
    : plugins_{reactor, std::move(options)},
      server_{reactor, std::move(socket),
              [this](devices::Registration registration) { return plugins_.add(std::move(registration)); }} {}

asio::awaitable<void> DevicePlugins::watch(std::weak_ptr<DevicePlugins*> self, node::KubeletLookout& kubelet,
                                           KubeletPauses pauses) {
  for (bool seen = false; !self.expired();) {
    const auto runs = co_await kubelet.kubelet_runs(os::now() + patience_with_processes);
    if (self.expired()) co_return;
    if (runs == true && seen) co_return (*self.lock())->leave_to_kubelet();
    seen = runs == true;
    co_await async::sleep(seen ? pauses.until_sure : pauses.between);
  }
}

/// The server stays, and refuses: its socket goes at the kubelet's start, or at evictd's end. To remove it here the
/// reactor would wait for a disk.
void DevicePlugins::leave_to_kubelet() {
  plugins_.leave("a kubelet runs on this node, which serves its device plugins");
  os::log_info(
      "a kubelet runs, and device plugins are the kubelet's: evictd lets go of them, and serves none until it is "
      "restarted; a plugin that does not register with the kubelet by itself has to be restarted");
}

}  // namespace evictd::app
