#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "core/signal.hpp"
#include "wake/poll_interval.hpp"

namespace evictd::wake {

/// A signal and how it is read. The functions are called on the reactor, up to a thousand times a second: they do not
/// block, nor allocate when all is well. Absent is what cannot be read now.
struct Gauge {
  core::Signal signal = core::Signal::MemoryAvailable;
  PollSettings pace{};
  std::function<std::optional<std::int64_t>()> available{};
  /// Cheaper, and never more than available() would say. Optional.
  std::function<std::optional<std::int64_t>()> at_least{};
  /// Where reading may take its time, as with a disk: reads beside the reactor and then calls back on it, if ever;
  /// available() says what was read. Of several callers the last is called. Optional.
  std::function<void(std::function<void()> then)> look{};
  /// Whether the kernel wakes a pass before any threshold can be met. Optional; only with at_least.
  std::function<bool()> guarded{};
};

}  // namespace evictd::wake
