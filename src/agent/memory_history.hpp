#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "agent/memory_sample.hpp"
#include "core/duration.hpp"
#include "core/observation.hpp"
#include "core/threshold_advice.hpp"
#include "node/node_memory.hpp"

namespace evictd::agent {

/// The worst that was seen of the node's memory since the agent started. Fed by every pass; a few additions each.
class MemoryHistory {
 public:
  void observed(const node::NodeMemoryReading& reading, core::Instant now);
  /// In the middle of a pass, when memory was read again.
  void observed(const core::Observations& observations, core::Instant now);
  /// An eviction for memory.available gave its first memory back, so long after the wake-up. `threshold`: bytes, the
  /// one that acted.
  void released(core::Duration since_wake, std::int64_t threshold);

  static constexpr core::Duration recent_kept = std::chrono::minutes(1);
  static constexpr core::Duration between_recent = std::chrono::seconds(1);
  /// What was available within the last minute, the oldest first, at most one sample a second and the latest one.
  [[nodiscard]] std::vector<MemorySample> recent(core::Instant now) const;

  [[nodiscard]] core::MemoryEvidence evidence(core::Instant now,
                                              const std::optional<core::ZoneWatermarks>& watermarks) const;

 private:
  void take(std::int64_t available, core::Instant now);

  std::deque<MemorySample> recent_;
  std::optional<MemorySample> newest_;
  std::optional<core::Instant> since_;
  std::optional<MemorySample> last_;
  std::int64_t reclaimable_ = 0;                 // of the last reading, bytes
  std::optional<std::int64_t> least_available_;  // since the last release
  std::int64_t reclaimable_at_least_ = 0;        // when that was
  core::MemoryEvidence worst_;
};

}  // namespace evictd::agent
