#include "wake/memory_counters.hpp"

#include <doctest/doctest.h>

namespace evictd::wake::memory_counters_test {

TEST_CASE("the counters are found by their whole names, and one that a kernel lacks is 0") {
  CHECK(parse_memory_counters("low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n") ==
        MemoryCounters{.high = 2, .max = 3, .oom = 4, .oom_kill = 5});
  CHECK(parse_memory_counters("oom_kill 5\nlow 1\n") == MemoryCounters{.oom_kill = 5});
  CHECK(parse_memory_counters("") == MemoryCounters{});
}

}  // namespace evictd::wake::memory_counters_test
