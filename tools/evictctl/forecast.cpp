#include "evictctl/forecast.hpp"

#include <cmath>

#include "evictctl/text.hpp"

namespace evictd::ctl {
namespace {

/// Less than that in a second is nothing.
constexpr double slowest = 0.5;
/// Further away than that is never: the rate will have changed a thousand times.
constexpr double years_of_seconds = 10 * 365.0 * 24 * 3600;

}  // namespace

bool is_hard(const v1::Threshold& threshold) {
  return threshold.grace_period().seconds() == 0 && threshold.grace_period().nanos() == 0;
}

Forecast forecast(const v1::SignalStatus& signal) {
  Forecast result;
  for (const auto& status : signal.thresholds()) {
    if (status.has_met_since()) {
      result.met = true;
      result.hard_met = result.hard_met || is_hard(status.threshold());
    } else if (result.next == nullptr || status.threshold().resolved() > result.next->threshold().resolved()) {
      result.next = &status;
    }
  }
  if (result.next == nullptr || !signal.has_available() || !signal.has_fill_rate() || signal.fill_rate() < slowest)
    return result;
  const auto distance = static_cast<double>(signal.available() - result.next->threshold().resolved());
  const double seconds = std::fmax(0, distance) / signal.fill_rate();
  if (seconds < years_of_seconds)
    result.left = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  return result;
}

std::string rate_text(const v1::SignalStatus& signal) {
  if (!signal.has_fill_rate()) return "-";
  const double rate = signal.fill_rate();
  if (std::abs(rate) < slowest) return "0";
  return (is_counted(signal.unit()) ? count_text(rate) : bytes_text(std::llround(rate))) + "/s";
}

}  // namespace evictd::ctl
