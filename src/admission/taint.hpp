#pragma once
#include "core/node.hpp"
#include "core/pod.hpp"

namespace evictd::admission {

/// Whether any of the pod's tolerations covers the taint. An empty effect covers all, an empty key (only with Exists)
/// all keys. (kubelet: TolerationsTolerateTaint)
[[nodiscard]] bool tolerates(const core::Pod& pod, const core::Taint& taint);

}  // namespace evictd::admission
