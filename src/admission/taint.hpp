#pragma once
#include <string>

#include "core/pod.hpp"

namespace evictd::admission {

/// What keeps pods off the node unless they tolerate it.
struct Taint {
  std::string key;
  std::string value{};
  std::string effect{};  ///< "NoSchedule", "PreferNoSchedule" or "NoExecute"

  friend bool operator==(const Taint&, const Taint&) = default;
};

/// Whether any of the pod's tolerations covers the taint. An empty effect covers all, an empty key (only with Exists)
/// all keys. (kubelet: TolerationsTolerateTaint)
[[nodiscard]] bool tolerates(const core::Pod& pod, const Taint& taint);

}  // namespace evictd::admission
