#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/pod.hpp"

namespace testbed {

/// Where a node has the cgroups of its pods.
class PodCgroups {
 public:
  /// Where a pod belongs, as CRI's cgroup_parent names it.
  [[nodiscard]] virtual std::string pod_cgroup(evictd::core::QosClass qos, std::string_view uid) const = 0;
  /// Those that run there, in whichever of its containers.
  [[nodiscard]] virtual std::vector<pid_t> processes(std::string_view pod_cgroup) const = 0;
  /// Bytes that all pods together can have.
  [[nodiscard]] virtual std::int64_t memory_capacity() const = 0;

 protected:
  ~PodCgroups() = default;
};

}  // namespace testbed
