#pragma once
#include <boost/asio/awaitable.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "admission/plugin_devices.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "devices/plugin_calls.hpp"

// What device plugins have to say when a pod is admitted. On the reactor.
namespace evictd::agent {

/// What plugins prefer, while one pod is decided on, and decided on again once the first open question has its answer:
/// what is asked for a container hangs on what those before it were given.
class DeviceWishes final : public admission::DevicePreference {
 public:
  /// `plugins`: they outlive this; null: there are none.
  explicit DeviceWishes(const devices::PluginCalls* plugins) : plugins_(plugins) {}

  /// Of a plugin without preferences there is no question: each has the pod decided on once more.
  [[nodiscard]] Result<std::set<std::string>> preferred(const std::string& container, const std::string& resource,
                                                        const MakeQuestion& question) override;

  /// The first question since the last call that had no answer.
  [[nodiscard]] std::optional<admission::DeviceQuestion> take_open() { return std::exchange(open_, std::nullopt); }
  /// One answer for each container and resource, however the question has changed since.
  void learn(const admission::DeviceQuestion& question, Result<std::set<std::string>> ids);

 private:
  const devices::PluginCalls* plugins_;
  std::map<std::pair<std::string, std::string>, Result<std::set<std::string>>> known_{};
  std::optional<admission::DeviceQuestion> open_{};
};

/// Whether any container has a limit on what plugins have.
[[nodiscard]] bool wants_plugin_devices(const core::Pod& pod, const devices::PluginCalls& plugins);

/// Has the plugins allocate what the pod's containers were given of theirs, those before others that start before
/// them, and puts what they answer into the allocation. A container that has its answer is not asked about again.
/// `pod` is held. (kubelet: allocateContainerResources)
[[nodiscard]] boost::asio::awaitable<Result<void>> allocate_devices(devices::PluginCalls& plugins, core::PodPtr pod,
                                                                    admission::PodAllocation& allocation);

/// Tells the plugins that the container is about to start; "": all of them are.
[[nodiscard]] boost::asio::awaitable<Result<void>> pre_start_containers(devices::PluginCalls& plugins,
                                                                        std::string container,
                                                                        admission::PodAllocation allocation);

}  // namespace evictd::agent
