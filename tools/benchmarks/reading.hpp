#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/variant.hpp"

namespace bench {

/// How fast a pod read files while nothing was short, beside an evictd of the variant.
struct ReadingRuns {
  Variant variant = Variant::fast;
  std::vector<double> mib_per_second{};  ///< of each run
  std::uint64_t spurious = 0;            ///< wake-ups for nothing, of all runs
};

/// On cgroup v2, and a node of 1 GiB that is full of file cache: a pod reads on and on, each page once. In turn with a
/// tripwire (fast) and without one (sampler), `runs` of 15 s each from evictd's start on, when a tripwire first stands.
[[nodiscard]] std::vector<ReadingRuns> measure_reading(int runs);

[[nodiscard]] std::string reading_table(const std::vector<ReadingRuns>& results);
[[nodiscard]] std::string reading_json(const std::vector<ReadingRuns>& results);

}  // namespace bench
