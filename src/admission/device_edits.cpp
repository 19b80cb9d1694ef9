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

}  // namespace evictd::admission
