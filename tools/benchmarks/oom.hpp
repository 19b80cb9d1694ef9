#pragma once
#include <span>
#include <string>
#include <vector>

#include "benchmarks/variant.hpp"

namespace bench {

/// A pod that takes memory as fast as it can be had.
struct Hog {
  bool huge_pages = false;  ///< by madvise; otherwise none
  int processes = 1;
  bool another = false;  ///< a second pod does the same 5 ms later
};

/// "4 KiB pages, 1 process", "4 KiB pages, 1 process, twice"
[[nodiscard]] std::string name(const Hog& hog);

/// The runs of one hog against one variant.
struct OomRuns {
  Hog hog;
  Variant variant;
  int runs = 0;
  int kernel_kills = 0;            ///< runs in which the kernel's OOM killer killed a process
  int evictions = 0;               ///< runs in which evictd evicted each hog, soon after the kernel's kill as well
  std::vector<double> left_mib{};  ///< of each run: how much of the node's memory was free at the worst moment
  /// With another: how long after the node was short beyond what the first still held evictd chose the second, ms. Less
  /// than nothing where it did so before.
  std::vector<double> second_ms{};
};

/// On a node of 1 GiB with memory.available<100Mi: every hog against each of these variants in turn, so many runs
/// each.
[[nodiscard]] std::vector<OomRuns> measure_oom(int runs, std::span<const Variant> variants);

[[nodiscard]] std::string oom_table(const std::vector<OomRuns>& results);
[[nodiscard]] std::string oom_json(const std::vector<OomRuns>& results);

}  // namespace bench
