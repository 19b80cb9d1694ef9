#pragma once
#include <algorithm>
#include <chrono>

#include "core/duration.hpp"

namespace evictd::agent {

/// How often the runtime's word may have pods listed: twenty times at once, for a pod that starts is told of four times
/// and is to be known at once, and then ten times a second, whatever a runtime says.
class ListPace {
 public:
  /// When the next such list may begin.
  [[nodiscard]] core::Instant next(core::Instant now) const { return std::max(now, full_ - (burst - 1) * spacing); }
  /// One begins.
  void begun(core::Instant now) { full_ = std::max(full_, now) + spacing; }

 private:
  static constexpr int burst = 20;
  static constexpr core::Duration spacing = std::chrono::milliseconds(100);

  core::Instant full_;  // when all of them are there again
};

}  // namespace evictd::agent
