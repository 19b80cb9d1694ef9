#include "wake/memory_counters.hpp"

#include "os/numbers.hpp"

namespace evictd::wake {

MemoryCounters parse_memory_counters(std::string_view table) {
  const auto line = [&](std::string_view name) { return os::find_number(table, name).value_or(0); };
  return {.high = line("high"), .max = line("max"), .oom = line("oom"), .oom_kill = line("oom_kill")};
}

}  // namespace evictd::wake
