#include "admission/device_edits.hpp"

#include <algorithm>

namespace evictd::admission {
namespace {

template <class Item>
void add_new_paths(std::vector<Item>& items, const std::vector<Item>& more) {
  for (const auto& item : more)
    if (std::ranges::find(items, item.container_path, &Item::container_path) == items.end()) items.push_back(item);
}

}  // namespace

void add_edits(DeviceEdits& edits, const DeviceEdits& more) {
  edits.environment.insert(more.environment.begin(), more.environment.end());
  add_new_paths(edits.mounts, more.mounts);
  add_new_paths(edits.devices, more.devices);
  edits.annotations.insert(more.annotations.begin(), more.annotations.end());
  for (const auto& name : more.cdi_devices)
    if (std::ranges::find(edits.cdi_devices, name) == edits.cdi_devices.end()) edits.cdi_devices.push_back(name);
}

std::size_t size_of(const DeviceEdits& edits) {
  constexpr std::size_t around_an_entry = 64;
  std::size_t sum = 0;
  for (const auto* texts : {&edits.environment, &edits.annotations})
    for (const auto& [name, value] : *texts) sum += around_an_entry + name.size() + value.size();
  for (const auto& mount : edits.mounts) sum += around_an_entry + mount.container_path.size() + mount.host_path.size();
  for (const auto& device : edits.devices)
    sum += around_an_entry + device.container_path.size() + device.host_path.size() + device.permissions.size();
  for (const auto& name : edits.cdi_devices) sum += around_an_entry + name.size();
  return sum;
}

}  // namespace evictd::admission
