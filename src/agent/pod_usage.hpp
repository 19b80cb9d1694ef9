#pragma once
#include <optional>
#include <vector>

#include "core/action.hpp"
#include "core/usage.hpp"
#include "node/pod_cgroups.hpp"

namespace evictd::agent {

/// The numbers a pass asks for, read now from the pods' cgroups: one entry for each pod of the request. A pod whose
/// cgroup has gone uses nothing; only one that exists and cannot be read has no stats.
[[nodiscard]] std::vector<std::optional<core::PodUsage>> measure_pods(const core::ReadPodUsage& request,
                                                                      node::PodCgroups& cgroups);

}  // namespace evictd::agent
