#pragma once
#include <functional>
#include <optional>

#include "core/duration.hpp"

namespace evictd::kube {

struct RetryLimits {
  /// The longest first delay. Each further one may be twice as long.
  core::Duration first = std::chrono::milliseconds{500};
  core::Duration longest = std::chrono::seconds{30};
  /// For how long things must have gone well before the next failure counts as the first again. A server that takes
  /// connections and drops them at once must not be asked at full speed.
  core::Duration lasting = std::chrono::seconds{10};
  /// What a server may ask for at most by Retry-After.
  core::Duration longest_demanded = std::chrono::minutes{5};
};

/// A number in [0, 1).
using Random = std::function<double()>;
/// Seeded by the system.
[[nodiscard]] Random any_random();

/// How long to wait before asking the API server again: exponential with full jitter, that is any time from 0 to the
/// bound with equal probability, so that thousands of nodes which lost the server at the same moment come back evenly
/// spread (AWS Architecture Blog, "Exponential Backoff And Jitter"). Pure: it has no clock and takes its random numbers
/// from outside. (core/back_off.hpp is another matter: pods that come back.)
class RetryDelay {
 public:
  explicit RetryDelay(RetryLimits limits = {}, Random random = any_random());

  /// Something failed: the delay before the next try. `demanded`: what the server's Retry-After asked for; the delay is
  /// never below it, and the jitter comes on top.
  [[nodiscard]] core::Duration failed(core::Instant now, std::optional<core::Duration> demanded = {});
  /// Something went well. May be told as often as it does.
  void succeeded(core::Instant now);

  /// Failures since things last went well for long enough.
  [[nodiscard]] int failures() const { return failures_; }

 private:
  RetryLimits limits_;
  Random random_;
  int failures_ = 0;
  std::optional<core::Instant> well_since_;
};

}  // namespace evictd::kube
