#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/variant.hpp"

namespace bench {

/// How fast a pod read files while nothing was short.
struct Reading {
  std::vector<double> mib_per_second{};   ///< of each run
  std::vector<double> stalled_percent{};  ///< of its time, in which it waited for memory (PSI)
  std::uint64_t spurious = 0;             ///< wake-ups for nothing, of all runs
};

/// Beside an evictd of the variant.
struct ReadingRuns {
  Variant variant = Variant::fast;
  Reading filling{};  ///< until the node is full of file cache
  Reading full{};
};

/// On cgroup v2: a pod reads on and on, each page once, on a node of 1 GiB. In turn with a tripwire (fast) and without
/// one (sampler), `runs` from a node without cache until it is full of it, and 15 s more.
[[nodiscard]] std::vector<ReadingRuns> measure_reading(int runs);

[[nodiscard]] std::string reading_table(const std::vector<ReadingRuns>& results);
[[nodiscard]] std::string reading_json(const std::vector<ReadingRuns>& results);

}  // namespace bench
