#pragma once
#include <string_view>

#include "pods/runtime_pod.hpp"

namespace evictd::agent {

/// The pods that can be stopped now. On the reactor.
class RunningPods {
 public:
  RunningPods() = default;
  RunningPods(const RunningPods&) = delete;
  RunningPods& operator=(const RunningPods&) = delete;
  virtual ~RunningPods() = default;

  /// The pod as the runtime lists it, or as its cgroup shows it before that; null if it is not on the node.
  [[nodiscard]] virtual pods::RuntimePodPtr find(std::string_view uid) const = 0;
  /// Pods came or went: has them listed now and, since a pod's containers follow its cgroup, a little later again.
  virtual void changed() = 0;
};

}  // namespace evictd::agent
