#pragma once
#include <deque>
#include <optional>

#include "core/duration.hpp"
#include "core/observation.hpp"
#include "core/signal.hpp"

namespace evictd::agent {

/// How fast the node's signals go, from readings that come at any time. A rate is what changed between the
/// newest reading and the one some five seconds before it: long enough that a burst of a few milliseconds is no trend,
/// short enough to follow one.
class FillRates {
 public:
  /// `now` never goes back.
  void observe(const core::Observations& observations, core::Instant now);

  /// How much less is available after a second, in the signal's unit; negative where it comes back. Unknown at first,
  /// and where there was no reading for long.
  [[nodiscard]] std::optional<double> rate(core::Signal signal) const;

 private:
  struct Reading {
    core::Instant time;
    core::Observations observations;
  };

  std::deque<Reading> readings_;  // the oldest first
};

}  // namespace evictd::agent
