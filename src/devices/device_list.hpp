#pragma once
#include <cstddef>

#include "admission/plugin_devices.hpp"
#include "core/error.hpp"

namespace v1beta1 {
class ListAndWatchResponse;
}

namespace evictd::devices {

/// Of one resource. Plugins that share a device out have some thousands; reading so many takes 10 ms.
inline constexpr std::size_t most_devices = 16'384;
/// Of all resources together, those included whose plugins have gone lately. With the longest ids they take 50 MiB.
inline constexpr std::size_t most_devices_of_all = 4 * most_devices;
/// Bytes of a device's id. The API has 63, which no kubelet insists on.
inline constexpr std::size_t longest_device_id = 253;

/// What a plugin told of its devices. An error, for the log: there are too many, or an id is empty, too long, or no
/// line of text; such a plugin is not listened to any further. Of two devices with one id the later one counts. A NUMA
/// node that no machine has is passed over.
[[nodiscard]] Result<admission::DeviceGroup> read_devices(const ::v1beta1::ListAndWatchResponse& message);

}  // namespace evictd::devices
