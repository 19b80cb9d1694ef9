#pragma once
#include <optional>

#include "config/yaml.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "core/quantity.hpp"

// What a v1.Pod says of amounts. Kubernetes takes one of any size, and a user could have a pod passed over by an amount
// that is refused here: what is more than can be held counts as the most that can be.
namespace evictd::pods {

/// resources.requests and the like, by resource.
[[nodiscard]] Result<void> read_amounts(const config::Value& value, core::ResourceList& target);

/// emptyDir.sizeLimit.
[[nodiscard]] Result<void> read_size_limit(const config::Value& value, std::optional<core::Quantity>& target);

/// resources, of a container or of the pod as a whole.
[[nodiscard]] Result<void> read_resources(const config::Value& value, core::ResourceRequirements& target);

}  // namespace evictd::pods
