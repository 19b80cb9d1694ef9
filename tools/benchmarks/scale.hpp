#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/statistics.hpp"

namespace bench {

/// What evictd takes on a node with so many pods.
struct ScaleResult {
  std::size_t pods = 0;
  Summary decided_ms{};          ///< wake-up to decision
  Summary killed_ms{};           ///< wake-up to the first kill
  Summary written_down_ms{};     ///< the first kill to when the pod was read for `explain`; less than 0: before it
  Summary eviction_cpu_ms{};     ///< CPU time of all its threads from before the crossing until the cleanup is done
  double quiet_pass_cpu_us = 0;  ///< CPU time of a look at the node that finds nothing to do
  double list_cpu_ms = 0;        ///< the reactor's CPU time for a list in which nothing is new
  double idle_passes = 0;        ///< a second: a busy machine's stalls make evictd look, too
  double idle_wakeups = 0;       ///< a second, of all its threads
  double idle_reactor_wakeups = 0;
  std::map<std::string, double> idle_wakeups_of{};  ///< a second, by the name of the thread
  double idle_cpu_percent = 0;                      ///< of one processor
  double idle_reactor_cpu_percent = 0;
  double resident_mib = 0;
  double busiest_turn_ms = 0;  ///< the most processor time of a turn, from evictd's start until the last eviction
};

struct ScaleOptions {
  std::vector<std::size_t> pods{10, 110, 500, 1000};
  int evictions = 10;     ///< at each size
  int idle_seconds = 20;  ///< how long it is watched doing nothing
};

[[nodiscard]] std::vector<ScaleResult> measure_scale(const ScaleOptions& options);

[[nodiscard]] std::string scale_table(const std::vector<ScaleResult>& results, const ScaleOptions& options);
[[nodiscard]] std::string scale_json(const std::vector<ScaleResult>& results);

}  // namespace bench
