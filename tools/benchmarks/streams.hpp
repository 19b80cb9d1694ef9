#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "benchmarks/statistics.hpp"

namespace bench {

struct StreamsOptions {
  int trials = 20;                 ///< evictions in each situation
  std::size_t subscribers = 1000;  ///< each on a connection of its own
  int rate = 10'000;               ///< events a second that are asked for
  std::size_t pods = 10;
  std::string scheduler = "none";  ///< or "nice" or "roundRobin", as a unit can have it
};

/// How quickly evictd evicts while events come and are told.
struct StreamsResult {
  std::string situation;
  std::size_t subscribers = 0;
  double events = 0;              ///< a second, as all that follows
  double told = 0;                ///< to all subscribers together
  double missed = 0;              ///< by all of them together, who were told so
  Summary decided_ms{};           ///< from the wake-up on, as evictd says it
  Summary killed_ms{};            ///< likewise
  Summary crossing_to_kill_ms{};  ///< from the crossing of the threshold on, as it is seen from outside
};

/// On real cgroups, with a stand-in for the runtime: a quiet log and nobody who reads it, then events, then events and
/// subscribers, all in turn and a few evictions at a time.
[[nodiscard]] std::vector<StreamsResult> measure_streams(const StreamsOptions& options);

[[nodiscard]] std::string streams_table(const std::vector<StreamsResult>& results, const StreamsOptions& options);
[[nodiscard]] std::string streams_json(const std::vector<StreamsResult>& results, const StreamsOptions& options);

}  // namespace bench
