#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "admission/allocation/numa_mask.hpp"
#include "core/error.hpp"

// What device plugins have told of the node's devices, as far as pods are decided by it.
namespace evictd::admission {

/// The devices of one resource.
struct DeviceGroup {
  /// Of each device, by its id, the NUMA nodes that it is attached to; none: it is near to all of them.
  std::map<std::string, NumaMask> places{};
  std::set<std::string> healthy{};  ///< ids: no others are given away

  friend bool operator==(const DeviceGroup&, const DeviceGroup&) = default;
};

/// By the resource's name. Groups are shared: they have thousands of devices, and the node is asked for by every pod.
using DevicesByResource = std::map<std::string, std::shared_ptr<const DeviceGroup>, std::less<>>;

/// Which devices of those that would do a plugin would rather give. (GetPreferredAllocation)
struct DeviceQuestion {
  std::string container;
  std::string resource;
  std::set<std::string> available{};     ///< ids to choose from, with the next ones
  std::set<std::string> must_include{};  ///< ids that the container has already: those of an earlier init container
  std::int64_t size = 0;                 ///< how many it is to have in all

  friend bool operator==(const DeviceQuestion&, const DeviceQuestion&) = default;
};

/// Asked while devices are chosen.
class DevicePreference {
 public:
  /// Makes the question with all its ids, of which there may be thousands.
  using MakeQuestion = std::function<DeviceQuestion()>;

  /// What is known of the plugin's wish; none: nothing. It may name what cannot be given. An error, of a plugin that
  /// was asked and failed, rejects the pod. `question`: called only where it is to be asked.
  [[nodiscard]] virtual Result<std::set<std::string>> preferred(const std::string& container,
                                                                const std::string& resource,
                                                                const MakeQuestion& question) = 0;

 protected:
  ~DevicePreference() = default;
};

struct PluginDevices {
  /// Of every resource that a plugin serves, or served until lately: without any healthy device then.
  DevicesByResource groups{};
  DevicePreference* preference = nullptr;  ///< null: no plugin is asked
};

}  // namespace evictd::admission
