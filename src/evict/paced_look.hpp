#pragma once
#include "core/duration.hpp"

namespace evictd::evict {

/// When a pod's processes may be looked at again, after a look that took from `begin` to `end`: so looks take a
/// twentieth of the time at most. One takes 20 ms where the processes are very many, and the loop that looks guards the
/// node meanwhile.
[[nodiscard]] constexpr core::Instant earliest_next_look(core::Instant begin, core::Instant end) {
  constexpr int share = 20;
  return end + (end - begin) * share;
}

}  // namespace evictd::evict
