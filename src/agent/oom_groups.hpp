#pragma once
#include <string_view>
#include <utility>

#include "agent/pod_tracker.hpp"
#include "agent/running_pods.hpp"
#include "core/pod.hpp"
#include "node/cgroup.hpp"
#include "pods/trust.hpp"

namespace evictd::agent {

/// A pod that says "true" here wants to be killed whole by the kernel's OOM killer, or not at all.
inline constexpr std::string_view oom_group_annotation = "evictd.io/oom-group";

/// Sets memory.oom.group of such pods' own cgroups (v2), if their namespace is trusted. It is gone with the cgroup. v1
/// has no such file. On the reactor: the write waits for nothing, and is done once for each cgroup.
class OomGroups final : public PodListener {
 public:
  /// These outlive this.
  OomGroups(const node::CgroupHierarchy& hierarchy, const RunningPods& pods, pods::TrustedNamespaces trusted)
      : hierarchy_{hierarchy}, pods_{pods}, trusted_{std::move(trusted)} {}

  void pods_changed(const core::PodList& pods) override;

 private:
  const node::CgroupHierarchy& hierarchy_;
  const RunningPods& pods_;
  pods::TrustedNamespaces trusted_;
};

}  // namespace evictd::agent
