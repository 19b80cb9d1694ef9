#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/pod.hpp"

namespace evictd::pods {

/// Of the two classes that every cluster has; what others stand for only the API server knows.
[[nodiscard]] constexpr std::optional<std::int32_t> priority_of_class(std::string_view name) {
  if (name == "system-node-critical") return core::system_critical_priority + 1000;
  if (name == "system-cluster-critical") return core::system_critical_priority;
  return std::nullopt;
}

}  // namespace evictd::pods
