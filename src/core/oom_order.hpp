#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/pod.hpp"
#include "core/synchronizer.hpp"

namespace evictd::core {

/// Who of a ranking is raised for the kernel's OOM killer (core/oom_steering.hpp), and past whom.
struct OomOrder {
  std::vector<std::size_t> raised{};  ///< places in the ranking, first to go first
  int behind = 0;                     ///< the highest score that any other pod of the ranking can have
};

/// The likeliest pods that may go are raised, `most` of them. Critical and Guaranteed ones are not, nor those of which
/// `is_reachable` says that their processes cannot be told from others'. `capacity`: the node's memory, bytes, > 0.
[[nodiscard]] OomOrder oom_order(std::span<const PlacedPod> ranking, std::size_t most, std::int64_t capacity,
                                 const std::function<bool(const Pod&)>& is_reachable);

/// Beyond which no process of the pod is raised: its class's own values end there.
[[nodiscard]] int most_raised(const Pod& pod);

}  // namespace evictd::core
