#pragma once
#include <functional>

#include "core/signal.hpp"
#include "node/signal_reader.hpp"
#include "wake/poll_interval.hpp"

namespace evictd::wake {

/// A signal, how often it is looked at, and by what, which outlives this.
struct Gauge {
  core::Signal signal = core::Signal::MemoryAvailable;
  PollSettings pace{};
  node::SignalProbe* probe = nullptr;  ///< never null
  /// Whether the kernel wakes a pass before any threshold can be met. Optional; only where the probe has a cheaper
  /// look.
  std::function<bool()> guarded{};
};

}  // namespace evictd::wake
