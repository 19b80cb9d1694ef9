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
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::admission {

/// Hands out the devices that the configuration names, to any pod whose container has a limit on their resource.
/// (kubelet: devicemanager, with plugins that never prefer one device to another)
class DeviceManager final : public ResourceProvider {
 public:
  using Ids = std::set<std::string>;

  /// `numa_nodes`: the machine's.
  DeviceManager(std::vector<Device> devices, NumaMask numa_nodes);

  /// A device that is named twice is an error, as is one on a NUMA node that is not there, if any is known.
  [[nodiscard]] static Result<std::unique_ptr<DeviceManager>> make(std::vector<Device> devices, NumaMask numa_nodes);

  [[nodiscard]] std::unique_ptr<Allocation> begin(const core::Pod& pod, const Allocations& others) const override;
  /// A device that is not there any more is no fault; one that two pods have is.
  [[nodiscard]] Result<void> check(const Allocations& allocations) const override;
  /// Devices come and go.
  [[nodiscard]] std::map<std::string, std::string, std::less<>> basis() const override { return {}; }

  /// The resources of which there are devices.
  [[nodiscard]] const std::map<std::string, Ids, std::less<>>& ids() const { return ids_; }
  /// Whether it matters where devices of the resource lie.
  [[nodiscard]] bool has_place(std::string_view resource) const;
  /// Sets of those NUMA nodes that have any device of the resource, given away or not: other nodes add nothing, and
  /// each would double the number of sets. (kubelet 1.36: generateDeviceTopologyHints)
  [[nodiscard]] std::vector<Hint> hints(std::string_view resource, const Ids& free, const Ids& reusable,
                                        std::int64_t count) const;
  /// The free ones of the resource in the order in which they are given away: near the affinity, elsewhere, nowhere.
  [[nodiscard]] std::vector<std::string> by_nearness(std::string_view resource, const Ids& free,
                                                     const std::optional<NumaMask>& affinity) const;

 private:
  struct Key {
    std::string resource;
    std::string id;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  [[nodiscard]] NumaMask place(std::string_view resource, const std::string& id) const;

  std::map<std::string, Ids, std::less<>> ids_{};
  std::map<Key, NumaMask> places_{};  // empty: near to all nodes
  NumaMask numa_nodes_;
};

}  // namespace evictd::admission
