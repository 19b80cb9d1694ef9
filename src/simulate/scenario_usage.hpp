#pragma once
#include "config/yaml.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "core/usage.hpp"

namespace evictd::simulate {

/// What a scenario says a pod uses. What it does not say of a container belongs to the pod's first one; a missing key
/// means 0. Without `ephemeral` the pod-level figure is the sum of writable layers, logs and local ephemeral volumes.
[[nodiscard]] Result<core::PodUsage> read_pod_usage(const config::Value& value, const core::Pod& pod);

}  // namespace evictd::simulate
