#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>

namespace bench {

/// What a process has used since its start, all its threads together.
struct ProcessCost {
  std::chrono::nanoseconds cpu{};   ///< user and system
  std::int64_t wakeups = 0;         ///< voluntary context switches: how often a thread went to sleep
  std::int64_t resident_bytes = 0;  ///< VmRSS, as of now
};

[[nodiscard]] ProcessCost cost_of(pid_t process);

}  // namespace bench
