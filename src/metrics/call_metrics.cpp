#include "metrics/call_metrics.hpp"

#include <chrono>
#include <string>

namespace evictd::metrics {
namespace {

/// A query takes 0.2 to 3 ms, a stop 50 to 150 ms beyond its grace period; deadlines end at 2 s, 10 s and a minute.
const prometheus::Histogram::BucketBoundaries& bounds() {
  static const prometheus::Histogram::BucketBoundaries seconds{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                               0.25,   0.5,   1,      2.5,   5,    10,    30,   60};
  return seconds;
}

}  // namespace

CallMetrics::CallMetrics(prometheus::Registry& registry)
    : calls_{prometheus::BuildCounter()
                 .Name("evictd_cri_calls_total")
                 .Help("Calls to the container runtime, by method and gRPC status.")
                 .Register(registry)},
      durations_{prometheus::BuildHistogram()
                     .Name("evictd_cri_call_duration_seconds")
                     .Help("How long calls to the container runtime took, whatever came of them, by method.")
                     .Register(registry)} {}

void CallMetrics::count(std::string_view method, std::string_view code, core::Duration time) {
  auto& counter = call_[{method, code}];
  if (counter == nullptr) counter = &calls_.Add({{"method", std::string(method)}, {"code", std::string(code)}});
  counter->Increment();
  auto& duration = duration_[method];
  if (duration == nullptr) duration = &durations_.Add({{"method", std::string(method)}}, bounds());
  duration->Observe(std::chrono::duration<double>(time).count());
}

}  // namespace evictd::metrics
