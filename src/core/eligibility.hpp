#pragma once
#include <cstdint>

namespace evictd::core {

/// Whether a pod may go because of a threshold, as far as that does not depend on what it uses.
enum class Eligibility : std::uint8_t {
  candidate,
  unlisted,  ///< no list names it yet, so it may be critical: a listed pod that does as well goes before it
  last,      ///< only when no other is left: an earlier eviction of it timed out
  excluded,  ///< critical, or on its way out already
};

}  // namespace evictd::core
