#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "core/duration.hpp"

namespace evictd::core {

/// Whether a pod that was told to end does nothing about it: for a while it has neither used a processor nor become
/// smaller. One that waits for a disk looks the same, so the time is longer than a disk takes that is not broken.
class Idleness {
 public:
  /// Two seconds: on a slow disk fsync(2) of some ten MiB takes one.
  static constexpr Duration longest = std::chrono::seconds(2);

  /// `processor_time`: used so far; absent where it cannot be read: then nothing is idle. `usage`: bytes.
  [[nodiscard]] bool lasts(Instant now, std::optional<Duration> processor_time, std::int64_t usage) {
    // Less is what the kernel needs to find out again and again that there is no memory.
    constexpr Duration some_work = std::chrono::milliseconds(5);
    constexpr std::int64_t some_memory = 1 << 20;
    const bool works =
        !processor_time || !since_ || *processor_time - used_ >= some_work || usage_ - usage >= some_memory;
    if (works) {
      since_ = now;
      used_ = processor_time.value_or(Duration::zero());
      usage_ = usage;
    }
    return now - *since_ >= longest;
  }
  /// In words, what a pod is killed for then.
  [[nodiscard]] static std::string why() { return "for " + to_string(longest) + " it neither shrank nor did anything"; }
  /// From now on anew.
  void reset() { since_.reset(); }

 private:
  std::optional<Instant> since_{};
  Duration used_{};
  std::int64_t usage_ = 0;
};

}  // namespace evictd::core
