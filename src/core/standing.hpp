#pragma once
#include <cstdint>

namespace evictd::core {

/// Whether a pod may go because of a threshold, as far as that does not depend on what it uses.
enum class Standing : std::uint8_t {
  candidate,
  last,      ///< only when no candidate is left: it came straight back, or an earlier eviction of it timed out
  excluded,  ///< critical, or on its way out already
};

}  // namespace evictd::core
