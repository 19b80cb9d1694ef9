#include "devices/allocate_answer.hpp"

#include <deviceplugin.pb.h>
#include <fmt/format.h>

namespace evictd::devices {
namespace {

std::size_t count_edits(const ::v1beta1::ContainerAllocateResponse& answer) {
  return answer.envs().size() + answer.annotations().size() + static_cast<std::size_t>(answer.mounts_size()) +
         static_cast<std::size_t>(answer.devices_size()) + static_cast<std::size_t>(answer.cdi_devices_size());
}

}  // namespace

Result<admission::DeviceEdits> read_allocate_answer(const ::v1beta1::AllocateResponse& message) {
  if (message.container_responses().empty()) return fail("no containers return in allocation response");
  const auto& answer = message.container_responses(0);
  if (const auto bytes = answer.ByteSizeLong(); bytes > longest_allocate_answer)
    return fail(
        fmt::format("the allocation response has {} bytes, and at most {} are taken", bytes, longest_allocate_answer));
  if (const auto count = count_edits(answer); count > most_device_edits)
    return fail(
        fmt::format("the allocation response has {} edits, and at most {} are taken", count, most_device_edits));
  admission::DeviceEdits edits;
  edits.environment.insert(answer.envs().begin(), answer.envs().end());
  edits.annotations.insert(answer.annotations().begin(), answer.annotations().end());
  for (const auto& mount : answer.mounts())
    edits.mounts.push_back(
        {.container_path = mount.container_path(), .host_path = mount.host_path(), .read_only = mount.read_only()});
  for (const auto& device : answer.devices())
    edits.devices.push_back({.container_path = device.container_path(),
                             .host_path = device.host_path(),
                             .permissions = device.permissions()});
  for (const auto& device : answer.cdi_devices()) edits.cdi_devices.push_back(device.name());
  // One answer may name a path twice, too.
  admission::DeviceEdits result;
  add_edits(result, edits);
  return result;
}

}  // namespace evictd::devices
