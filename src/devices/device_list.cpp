#include "devices/device_list.hpp"

#include <deviceplugin.pb.h>
#include <fmt/format.h>

#include <limits>
#include <string>

#include "admission/allocation/numa_mask.hpp"
#include "core/printable.hpp"

namespace evictd::devices {
namespace {

Result<void> check_id(const std::string& id) {
  if (id.empty()) return fail("a device has no id");
  if (id.size() > longest_device_id)
    return fail(fmt::format("a device's id has {} bytes, and at most {} are taken", id.size(), longest_device_id));
  if (auto shown = core::printable(id); shown != id) return fail(fmt::format("\"{}\" is no id of a device", shown));
  return {};
}

/// It may name as many nodes as there is room for in a message.
admission::NumaMask place_of_device(const ::v1beta1::Device& device) {
  admission::NumaMask place;
  for (const auto& node : device.topology().nodes())
    if (node.id() >= 0 && node.id() <= std::numeric_limits<int>::max())
      place = place | admission::NumaMask::of(static_cast<int>(node.id()));
  return place;
}

}  // namespace

Result<admission::DeviceGroup> read_devices(const ::v1beta1::ListAndWatchResponse& message) {
  if (static_cast<std::size_t>(message.devices_size()) > most_devices)
    return fail(fmt::format("there are {} devices, and at most {} are taken", message.devices_size(), most_devices));
  admission::DeviceGroup group;
  for (const auto& device : message.devices()) {
    if (auto right = check_id(device.id()); !right) return std::unexpected(right.error());
    group.places.insert_or_assign(device.id(), place_of_device(device));
    if (device.health() == "Healthy")
      group.healthy.insert(device.id());
    else
      group.healthy.erase(device.id());
  }
  return group;
}

}  // namespace evictd::devices
