#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "evictd.pb.h"

namespace evictd::ctl {

/// Where a signal is on its way to.
struct Forecast {
  /// The threshold that comes next: of those that are not met the one that will be first; null where there is none.
  const v1::ThresholdStatus* next = nullptr;
  bool met = false;       ///< a threshold is met, hard or soft
  bool hard_met = false;  ///< a hard one is: pods are being evicted
  /// Until `next` is met, if it goes on as it does; absent while it does not go down, or nobody knows.
  std::optional<std::chrono::nanoseconds> left{};
};

/// Points into the status.
[[nodiscard]] Forecast forecast(const v1::SignalStatus& signal);

[[nodiscard]] bool is_hard(const v1::Threshold& threshold);

/// "12.3Mi/s", "-4/s"; "-" where it is unknown, "0" where nothing changes to speak of.
[[nodiscard]] std::string rate_text(const v1::SignalStatus& signal);

}  // namespace evictd::ctl
