#pragma once
#include <optional>

#include "config/yaml.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "core/pre_stop.hpp"

// What a v1.Container says of its end.
namespace evictd::pods {

/// containers[].lifecycle, of which only preStop counts: exec, httpGet or sleep, the first of them that is there. Any
/// other handler is none, and a kubelet cannot run it either. The port of an httpGet stays as it is written.
[[nodiscard]] Result<void> read_lifecycle(const config::Value& value, std::optional<core::PreStop>& target);

/// Puts the number in the place of a port's name in the container's hook, by its list of ports; a name that is none of
/// theirs stays. `value`: the whole container. (kubelet: ResolveContainerPort)
[[nodiscard]] Result<void> resolve_hook_port(const config::Value& value, core::Container& target);

}  // namespace evictd::pods
