#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node/cgroup.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::agent {

/// Pods that have a cgroup with processes in it but are on no list of the runtime's yet: one that was started this
/// moment, or while the runtime hangs. So a brand-new hog does not hide.
///
/// Of such a pod nothing is known but its uid and its cgroup's place, and what the kubelet wrote into the
/// oom_score_adj of its processes: the memory request of a Burstable pod, and that a pod is Guaranteed or critical,
/// which cannot be told apart, so that neither is evicted before it is listed. (kubelet: GetContainerOOMScoreAdjust)
class UnlistedPods {
 public:
  struct Place {
    const node::CgroupHierarchy& hierarchy;  ///< outlives this
    std::string pods_cgroup;
    std::string proc;
    std::int64_t memory_capacity = 0;  ///< bytes, > 0
  };

  explicit UnlistedPods(Place place) : place_{std::move(place)} {}

  /// Looks through the pods' cgroups, two levels deep: 5 µs for each of those that are listed, 50 µs for others. Says
  /// whether something is different from before.
  bool look(const std::function<bool(std::string_view uid)>& is_listed);

  [[nodiscard]] const std::vector<pods::RuntimePodPtr>& pods() const { return pods_; }
  /// Null for others.
  [[nodiscard]] pods::RuntimePodPtr find(std::string_view uid) const;

 private:
  [[nodiscard]] std::vector<std::string> cgroups() const;
  [[nodiscard]] pods::RuntimePodPtr infer(const std::string& cgroup, const std::string& uid) const;

  Place place_;
  std::vector<pods::RuntimePodPtr> pods_;
};

}  // namespace evictd::agent
