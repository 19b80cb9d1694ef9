#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "app/configuration.hpp"
#include "core/duration.hpp"
#include "devices/plugins.hpp"
#include "devices/registration_server.hpp"
#include "node/kubelet_lookout.hpp"

namespace evictd::app {

/// How often a kubelet is looked for that comes later than evictd. Each look takes 10 ms of a thousand processes.
struct KubeletPauses {
  core::Duration between = std::chrono::seconds(30);
  /// Until one that was seen is looked for once more: `kubelet --version`, which kubeadm runs, serves nobody.
  core::Duration until_sure = std::chrono::seconds(2);
};

/// Serves the node's device plugins, where no kubelet does. On the reactor.
///
/// evictd may start before the node's kubelet. In a directory that nobody named the plugins are the kubelet's once it
/// runs: it removes all sockets there, and plugins register with it. evictd lets go of them then, until it is
/// restarted, and never opens its socket again.
class DevicePlugins {
 public:
  /// `served_before`: resources that plugins served before a restart. Null where the configuration has no directory for
  /// them. One that cannot be served is a warning: the node is guarded all the same. Plugins are heard once the reactor
  /// runs. `kubelet` must outlive this.
  [[nodiscard]] static std::unique_ptr<DevicePlugins> make(const boost::asio::any_io_executor& reactor,
                                                           const Configuration& configuration,
                                                           std::set<std::string> served_before,
                                                           node::KubeletLookout& kubelet, KubeletPauses pauses = {});

  DevicePlugins(const boost::asio::any_io_executor& reactor, devices::PluginsOptions options,
                os::ListeningSocket socket);

  [[nodiscard]] devices::Plugins& plugins() { return plugins_; }

 private:
  void leave_to_kubelet();
  /// Ends once `self` has left its plugins, or is gone.
  static boost::asio::awaitable<void> watch(std::weak_ptr<DevicePlugins*> self, node::KubeletLookout& kubelet,
                                            KubeletPauses pauses);

  devices::Plugins plugins_;
  devices::RegistrationServer server_;  // hands over to the plugins
  std::shared_ptr<DevicePlugins*> self_ = std::make_shared<DevicePlugins*>(this);
};

}  // namespace evictd::app
