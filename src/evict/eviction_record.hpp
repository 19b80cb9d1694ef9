#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "core/duration.hpp"
#include "core/eviction.hpp"
#include "core/wake.hpp"
#include "evict/progress.hpp"
#include "node/pod_memory_snapshot.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

/// An eviction under way: what was decided, how far it has come, and what its later events refer to.
struct EvictionRecord : core::Eviction, Reached {
  std::uint64_t id = 0;  ///< the number of its EVICTION_INTENDED event
  core::Turn turn{};
  pods::RuntimePodPtr runtime{};  ///< what is stopped; null in a dry run
  /// Since when what it held on a disk is back, too, or is not waited for any more, should that be before its end.
  std::optional<core::Instant> settled{};
  /// Who held what of a pod that went for memory, once that is known; not over a restart.
  std::shared_ptr<const node::PodMemorySnapshot> snapshot{};
};

}  // namespace evictd::evict
