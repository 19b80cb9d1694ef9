#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "admission/allocation/hint.hpp"
#include "admission/allocation/numa_mask.hpp"
#include "admission/allocation/provider.hpp"
#include "admission/device.hpp"
#include "admission/plugin_devices.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::admission {

/// Hands out the devices that the configuration names, and those of device plugins, to any pod whose container has a
/// limit on their resource. (kubelet: devicemanager; a configured device is one of a plugin that is always there and
/// never prefers one device to another)
class DeviceManager final : public ResourceProvider {
 public:
  using Ids = std::set<std::string>;

  /// `numa_nodes`: the machine's.
  DeviceManager(const std::vector<Device>& devices, NumaMask numa_nodes);

  /// A device that is named twice is an error, as is one on a NUMA node that is not there, if any is known.
  [[nodiscard]] static Result<std::unique_ptr<DeviceManager>> make(const std::vector<Device>& devices,
                                                                   NumaMask numa_nodes);

  [[nodiscard]] std::unique_ptr<Allocation> begin(const core::Pod& pod, const Allocations& others) const override;
  /// The same with the plugins' devices. A configured resource stays the configuration's.
  [[nodiscard]] std::unique_ptr<Allocation> begin(const core::Pod& pod, const Allocations& others,
                                                  const PluginDevices& plugins) const;
  /// A device that is not there any more is no fault; one that two pods have is.
  [[nodiscard]] Result<void> check(const Allocations& allocations) const override;
  /// Devices come and go.
  [[nodiscard]] std::map<std::string, std::string, std::less<>> basis() const override { return {}; }

 private:
  DevicesByResource groups_{};
  NumaMask numa_nodes_;
};

/// Devices by where they lie, as the topology policy wants them: near its affinity, elsewhere, or nowhere.
struct DevicesByNearness {
  std::set<std::string> near{};
  std::set<std::string> elsewhere{};
  std::set<std::string> nowhere{};
};

/// (kubelet: filterByAffinity)
[[nodiscard]] DevicesByNearness by_nearness(const DeviceGroup& group, const std::set<std::string>& free,
                                            NumaMask affinity);

/// Sets of those of `numa_nodes` that have any device of the group, given away or not: other nodes add nothing, and
/// each would double the number of sets. Absent: it does not matter where its devices lie. (kubelet 1.36:
/// generateDeviceTopologyHints)
[[nodiscard]] ResourceHints device_hints(const DeviceGroup& group, NumaMask numa_nodes,
                                         const std::set<std::string>& free, const std::set<std::string>& reusable,
                                         std::int64_t count);

}  // namespace evictd::admission
