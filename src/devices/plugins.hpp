#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "admission/plugin_devices.hpp"
#include "core/error.hpp"
#include "devices/plugin_calls.hpp"
#include "devices/registration.hpp"

namespace evictd::devices {

struct PluginsOptions {
  std::string directory;                            ///< of the plugins' sockets
  std::set<std::string, std::less<>> configured{};  ///< resources whose devices the configuration names: no plugin's
  /// Resources that plugins served before a restart: they are known as if their plugin had gone just now. (kubelet:
  /// readCheckpoint)
  std::set<std::string> served_before{};
  /// How long a plugin that registers may take to be connected to, and to say what it is like. (kubelet: dial)
  std::chrono::milliseconds patience{10'000};
  /// How long a resource stays known whose plugin has gone. (kubelet: endpointStopGracePeriod)
  std::chrono::milliseconds grace{300'000};
  /// How long one call may take when a pod is given devices, which nothing but that pod waits for. The kubelet has this
  /// limit for PreStartContainer, and none for the others.
  std::chrono::milliseconds longest_call{30'000};
};

/// The device plugins of the node and their devices, by resource. On the reactor; calls go over a thread of its own,
/// and files are looked at by another one.
///
/// It must be destroyed before the io_context, and blocks for well below a millisecond then; coroutines that were under
/// way still end if the reactor runs on.
class Plugins final : public PluginCalls {
 public:
  Plugins(boost::asio::any_io_executor reactor, PluginsOptions options);
  ~Plugins();
  Plugins(const Plugins&) = delete;
  Plugins& operator=(const Plugins&) = delete;

  /// Connects to a plugin and listens to it from then on, in place of one that served its resource before. The error
  /// is for the plugin. (kubelet: Register, PluginConnected)
  [[nodiscard]] boost::asio::awaitable<Result<void>> add(Registration registration);

  /// Of every resource that a plugin serves or has served within the grace period. Where the plugin has gone no device
  /// is healthy; where it has not told its devices yet there are those of the one before it.
  [[nodiscard]] const admission::DevicesByResource& devices() const;

  /// The names of those, in a form to be kept.
  [[nodiscard]] std::set<std::string> resources() const;
  /// Has `call` called whenever the names have changed, until another one is given; it may be empty.
  void when_resources_change(std::function<void()> call);

  /// Lets go of all plugins for good. Their devices are unknown then, and no pod is kept away for want of one that
  /// somebody else gives; but one that was just being given some is rejected, since calls fail. Whoever registers is
  /// told `why`. resources() stays as it is, for a restart.
  void leave(std::string why);

  [[nodiscard]] bool is_of_plugins(std::string_view resource) const override;
  [[nodiscard]] bool has_preferences(std::string_view resource) const override;
  [[nodiscard]] Awaitable<std::set<std::string>> prefer(admission::DeviceQuestion question) override;
  [[nodiscard]] Awaitable<admission::DeviceEdits> allocate(std::string resource, std::set<std::string> ids) override;
  [[nodiscard]] Awaitable<void> pre_start(std::string resource, std::set<std::string> ids) override;

 private:
  class Table;
  std::shared_ptr<Table> table_;  // coroutines share it
};

}  // namespace evictd::devices
