#pragma once
#include <chrono>
#include <string>

namespace evictd::kube {

/// What API objects tell times by.
using WallTime = std::chrono::system_clock::time_point;

/// "2024-05-01T12:00:00Z": whole seconds, as metav1.Time has them.
[[nodiscard]] std::string rfc3339(WallTime time);

}  // namespace evictd::kube
