#pragma once
#include <cstdint>
#include <string_view>

namespace evictd::wake {

/// The lines of a v2 cgroup's memory.events that evictd looks at. Counters only grow; a kernel without one says 0.
struct MemoryCounters {
  std::int64_t high = 0;      ///< memory.high was exceeded, and the allocator held
  std::int64_t max = 0;       ///< memory.max was about to be exceeded
  std::int64_t oom = 0;       ///< and reclaim did not help
  std::int64_t oom_kill = 0;  ///< processes killed; with memory.oom.group the first of them counts twice

  friend bool operator==(const MemoryCounters&, const MemoryCounters&) = default;
};

[[nodiscard]] MemoryCounters parse_memory_counters(std::string_view table);

}  // namespace evictd::wake
