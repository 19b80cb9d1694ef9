#pragma once
#include <boost/asio/awaitable.hpp>
#include <set>
#include <string>
#include <string_view>

#include "admission/device_edits.hpp"
#include "admission/plugin_devices.hpp"
#include "core/error.hpp"

namespace evictd::devices {

/// What plugins are asked when a pod is given their devices. On the reactor. Every call ends, at the latest with its
/// deadline, and throws nothing; its errors are in the kubelet's words, without a name of the call.
class PluginCalls {
 public:
  template <class T>
  using Awaitable = boost::asio::awaitable<Result<T>>;

  /// Whether devices of the resource are a plugin's, be it there or not, and not the configuration's.
  [[nodiscard]] virtual bool is_of_plugins(std::string_view resource) const = 0;

  /// Whether a plugin is there for the resource that is to be asked which devices it would rather give.
  [[nodiscard]] virtual bool has_preferences(std::string_view resource) const = 0;
  /// None where the plugin has no preferences. (GetPreferredAllocation)
  [[nodiscard]] virtual Awaitable<std::set<std::string>> prefer(admission::DeviceQuestion question) = 0;
  /// (Allocate)
  [[nodiscard]] virtual Awaitable<admission::DeviceEdits> allocate(std::string resource, std::set<std::string> ids) = 0;
  /// Nothing happens where the plugin does not want to be told, or none was there since evictd began: a container that
  /// is made anew keeps its devices without one. (PreStartContainer)
  [[nodiscard]] virtual Awaitable<void> pre_start(std::string resource, std::set<std::string> ids) = 0;

 protected:
  ~PluginCalls() = default;
};

}  // namespace evictd::devices
