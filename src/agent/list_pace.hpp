#pragma once
#include <algorithm>
#include <chrono>

#include "core/duration.hpp"

namespace evictd::agent {

/// How often pods are listed: by the clock, though nothing asks for it, and by the runtime's word.
///
/// By the clock a list finds what nobody told. A pod that went unnoticed can be missed by the ranking for this long,
/// and listing costs containerd a few milliseconds, and some ten wake-ups of threads.
///
/// The runtime's word may have pods listed twenty times at once, for a pod that starts is told of four times and is to
/// be known at once, and then ten times a second, whatever a runtime says.
class ListPace {
 public:
  /// What is known of the pods without another list.
  struct Known {
    bool all = false;              ///< the last list had all of them
    bool runtime_heard = false;    ///< the runtime tells of each that comes or goes
    bool cgroups_watched = false;  ///< the kernel tells of each cgroup of a pod or container that comes or goes
  };

  /// By the clock, where nobody tells.
  static constexpr core::Duration usual = std::chrono::seconds(10);

  /// `least`: by the clock no list comes earlier than this after another; for tests.
  explicit ListPace(core::Duration least = usual) : least_{least} {}

  /// How long after a list the clock asks for the next.
  [[nodiscard]] core::Duration by_clock(const Known& known) const {
    using namespace std::chrono_literals;
    if (!known.all) return least_;
    if (known.runtime_heard) return std::max<core::Duration>(least_, 1min);
    if (known.cgroups_watched) return std::max<core::Duration>(least_, 30s);
    return least_;
  }

  /// When the next list by the runtime's word may begin.
  [[nodiscard]] core::Instant next(core::Instant now) const { return std::max(now, full_ - (burst - 1) * spacing); }
  /// One begins.
  void begun(core::Instant now) { full_ = std::max(full_, now) + spacing; }

 private:
  static constexpr int burst = 20;
  static constexpr core::Duration spacing = std::chrono::milliseconds(100);

  core::Duration least_;
  core::Instant full_;  // when all of them are there again
};

}  // namespace evictd::agent
