#pragma once
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "core/duration.hpp"
#include "core/eviction.hpp"
#include "core/synchronizer.hpp"
#include "core/trim.hpp"
#include "core/usage.hpp"

namespace evictd::simulate {

// What evictd does beside choosing a pod, as a step of a simulation prints it. `usage[i]` belongs to the policy's
// `pods[i]`.

/// The pods that are raised, first to go first, and what their processes have as oom_score_adj while a memory threshold
/// is near. A pod is taken for one process that holds all, and has what it has chosen (`chosen`, by the pods' keys), or
/// what the kubelet gives its first container. `capacity`: the node's memory, bytes, > 0.
[[nodiscard]] boost::json::array describe_steering(const core::Synchronizer& policy,
                                                   std::span<const std::optional<core::PodUsage>> usage,
                                                   const std::map<std::string, int, std::less<>>& chosen,
                                                   std::int64_t capacity, core::Instant now);

/// How much is to be gained, and from whom.
[[nodiscard]] boost::json::object describe_trim(const core::Synchronizer& policy, const core::TrimGoal& goal,
                                                std::span<const std::optional<core::PodUsage>> usage,
                                                core::Instant now);

/// Why this pod, and what would have saved it; null where no threshold on memory made it go.
[[nodiscard]] boost::json::value describe_reason(const core::Eviction& eviction);

}  // namespace evictd::simulate
