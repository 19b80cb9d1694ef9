#include "agent/latency.hpp"

#include <algorithm>
#include <cmath>

namespace evictd::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::array<core::Duration, LatencyHistogram::bound_count> upper_bounds{
    100us, 200us, 500us, 1ms, 2ms, 5ms, 10ms, 20ms, 50ms, 100ms, 200ms, 500ms, 1s, 2s, 5s, 10s, 20s, 60s};

}  // namespace

std::span<const core::Duration> LatencyHistogram::bounds() { return upper_bounds; }

void LatencyHistogram::record(core::Duration time) {
  time = std::max(time, core::Duration::zero());
  ++buckets_[static_cast<std::size_t>(std::ranges::lower_bound(upper_bounds, time) - upper_bounds.begin())];
  ++count_;
  sum_ += time;
  max_ = std::max(max_, time);
}

core::Duration LatencyHistogram::quantile(double share) const {
  const double wanted = share * static_cast<double>(count_);
  double below = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const auto here = static_cast<double>(buckets_[i]);
    if (here == 0 || below + here < wanted) {
      below += here;
      continue;
    }
    const auto begin = i == 0 ? core::Duration::zero() : upper_bounds[i - 1];
    const auto end = i < upper_bounds.size() ? std::min(upper_bounds[i], max_) : max_;
    const double part = std::max(wanted - below, 0.0) / here;
    return begin + core::Duration(std::llround(static_cast<double>((end - begin).count()) * part));
  }
  return max_;
}

std::string_view name(Phase phase) {
  switch (phase) {
    case Phase::Decision: return "decision";
    case Phase::FirstKill: return "first_kill";
    case Phase::FirstRelease: return "first_release";
    case Phase::Cleanup: return "cleanup";
  }
  return "";
}

std::string_view since(Phase phase) { return phase == Phase::Decision ? "wake_up" : "decision"; }

}  // namespace evictd::agent
