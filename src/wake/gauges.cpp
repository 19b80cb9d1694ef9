#include "wake/gauges.hpp"

#include "core/signal.hpp"
#include "wake/fill_rate.hpp"
#include "wake/memcg_threshold.hpp"
#include "wake/poll_interval.hpp"

namespace evictd::wake {
namespace {

PollSettings poll_settings(const core::Pace& pace, double memory_rate, core::Duration longest) {
  return {.rate = pace.rate > 0 ? pace.rate : memory_rate,
          .fastest = pace.fastest,
          .shortest = pace.shortest,
          .longest = longest,
          .step = pace.step};
}

const MemcgThreshold* threshold_of(core::Signal signal, const KernelThresholds& kernel) {
  if (signal == core::Signal::MemoryAvailable) return kernel.node;
  return signal == core::Signal::AllocatableMemoryAvailable ? kernel.pods : nullptr;
}

}  // namespace

std::vector<Gauge> make_gauges(std::span<node::SignalProbe* const> probes, const KernelThresholds& kernel,
                               core::Duration longest) {
  const auto memory_rate = measure_fill_rate();
  std::vector<Gauge> gauges;
  for (auto* probe : probes) {
    for (const auto signal : probe->signals()) {
      auto& gauge = gauges.emplace_back(signal, poll_settings(core::row_of(signal).pace, memory_rate, longest), probe);
      if (const auto* threshold = threshold_of(signal, kernel))
        gauge.guarded = [threshold] { return threshold->guards(); };
    }
  }
  return gauges;
}

}  // namespace evictd::wake
