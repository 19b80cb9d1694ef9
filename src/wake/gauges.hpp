#pragma once
#include <span>
#include <vector>

#include "core/duration.hpp"
#include "node/signal_reader.hpp"
#include "wake/gauge.hpp"

namespace evictd::wake {

class MemcgThreshold;

/// The kernel's thresholds on memory, where there are any.
struct KernelThresholds {
  const MemcgThreshold* node = nullptr;
  const MemcgThreshold* pods = nullptr;
};

/// A gauge for every signal of the probes, in their order. The memory gauges sleep for as long as the kernel's
/// thresholds guard them. Everything given must outlive the gauges. `longest`: a gauge is read at least that often.
/// Measures how fast memory can be taken, which takes some milliseconds.
[[nodiscard]] std::vector<Gauge> make_gauges(std::span<node::SignalProbe* const> probes, const KernelThresholds& kernel,
                                             core::Duration longest);

}  // namespace evictd::wake
