#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/duration.hpp"
#include "core/observation.hpp"
#include "core/ranked_pod.hpp"
#include "core/signal.hpp"
#include "core/synchronizer.hpp"
#include "core/threshold.hpp"
#include "core/usage.hpp"

namespace evictd::core {

// Whose file cache is taken, and for what, before any pod has to go (eviction.trim).

/// How far above a soft threshold's value a trim goes on: at the value the next page would be too much.
inline constexpr std::int64_t trim_margin = 16 << 20;

struct TrimGoal {
  Threshold threshold;
  Observation observation;
  std::int64_t wanted = 0;  ///< bytes; with them there is no need to trim any more
};

struct TrimAfterPass {
  bool pods_go = false;            ///< a threshold has pods evicted: there is nothing to be trimmed for
  std::optional<TrimGoal> goal{};  ///< a soft threshold's grace period runs
};

/// After a pass that saw this.
[[nodiscard]] TrimAfterPass trim_after_pass(const Synchronizer& policy, const Observations& observations, Instant now);

/// While no hard threshold is met: the first one that is near, which is where less is available than twice what it
/// keeps free. Absent where one is met: a pass comes, and is not to be held up.
[[nodiscard]] std::optional<TrimGoal> trim_near_hard(std::span<const Threshold> thresholds,
                                                     const Observations& observations);

/// The pods over their request that may go, in the order in which they would. Of one that no list names yet nobody
/// knows what it requests. `usage[i]` belongs to the policy's `pods[i]`.
[[nodiscard]] std::vector<RankedPod> trimmed_pods(const Synchronizer& policy, Signal signal,
                                                  std::span<const std::optional<PodUsage>> usage, Instant now);

}  // namespace evictd::core
