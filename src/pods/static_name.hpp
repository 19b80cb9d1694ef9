#pragma once
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace evictd::pods {

/// What the kubelet puts behind the names of static pods; nothing where the node has no name. (kubelet:
/// generatePodName, applyDefaults)
[[nodiscard]] inline std::string static_suffix(std::string_view node_name) {
  if (node_name.empty()) return {};
  auto suffix = "-" + std::string(node_name);
  std::ranges::transform(suffix, suffix.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return suffix;
}

}  // namespace evictd::pods
