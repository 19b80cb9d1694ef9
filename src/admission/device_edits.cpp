#include "admission/device_edits.hpp"

#include <set>
#include <string_view>

namespace evictd::admission {
namespace {

std::string_view key_of_edit(const DeviceEdits::Mount& mount) { return mount.container_path; }
std::string_view key_of_edit(const DeviceEdits::Node& device) { return device.container_path; }
std::string_view key_of_edit(const std::string& cdi_device) { return cdi_device; }

/// There may be thousands of them.
template <class Item>
void add_new_items(std::vector<Item>& items, const std::vector<Item>& more) {
  items.reserve(items.size() + more.size());  // the keys look into the items
  std::set<std::string_view> seen;
  for (const auto& item : items) seen.insert(key_of_edit(item));
  for (const auto& item : more)
    if (seen.insert(key_of_edit(item)).second) items.push_back(item);
}

}  // namespace

void add_edits(DeviceEdits& edits, const DeviceEdits& more) {
  edits.environment.insert(more.environment.begin(), more.environment.end());
  add_new_items(edits.mounts, more.mounts);
  add_new_items(edits.devices, more.devices);
  edits.annotations.insert(more.annotations.begin(), more.annotations.end());
  add_new_items(edits.cdi_devices, more.cdi_devices);
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
