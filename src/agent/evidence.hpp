#pragma once
#include <optional>
#include <vector>

#include "agent/black_box.hpp"
#include "agent/memory_sample.hpp"
#include "core/duration.hpp"

namespace evictd::agent {

/// What is known of a pod that was killed for memory.
struct Evidence {
  BlackBox::Found found{};
  std::vector<MemorySample> node_available{};  ///< of the last minute, the oldest first
  core::Instant killed{};
  std::optional<core::Instant> short_since{};  ///< since when the threshold has been met
};

}  // namespace evictd::agent
