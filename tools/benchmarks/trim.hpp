#pragma once
#include <string>
#include <vector>

namespace bench {

/// The runs of a node that is short by file cache alone, with eviction.trim or without.
struct TrimRuns {
  bool trims = false;
  int runs = 0;
  int evictions = 0;                ///< runs in which the pod that held the cache went
  std::vector<double> freed_mib{};  ///< of each trim
  std::vector<double> took_ms{};    ///< of each trim
};

/// On a node of 1 GiB a pod uses 300 MiB of file cache, half of which makes the node meet a soft threshold with a grace
/// period of 5 s; in turn with the trim and without, so many runs each.
[[nodiscard]] std::vector<TrimRuns> measure_trim(int runs);

[[nodiscard]] std::string trim_table(const std::vector<TrimRuns>& results);
[[nodiscard]] std::string trim_json(const std::vector<TrimRuns>& results);

}  // namespace bench
