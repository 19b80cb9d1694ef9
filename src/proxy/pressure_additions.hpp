#pragma once
#include <string>
#include <string_view>

namespace runtime::v1 {
class PodSandboxConfig;
}

namespace evictd::proxy {

/// With the value "true" a pod's containers are told when memory is short.
inline constexpr std::string_view pressure_annotation = "evictd.io/memory-pressure";

/// What a container of the pod must be given so that it learns of it, as a serialized CreateContainerRequest with
/// nothing else in it: the directory of evictd's memory pressure socket, read-only, since the socket in it is another
/// one after each start of evictd; and $MEMORY_PRESSURE_WATCH (https://systemd.io/MEMORY_PRESSURE). "": nothing, as the
/// pod does not ask for it, or as there is no `socket`.
[[nodiscard]] std::string pressure_additions(const ::runtime::v1::PodSandboxConfig& pod, const std::string& socket);

}  // namespace evictd::proxy
