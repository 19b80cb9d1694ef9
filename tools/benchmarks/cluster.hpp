#pragma once
#include <chrono>
#include <cstddef>

#include "benchmarks/counting_server.hpp"
#include "benchmarks/report.hpp"

namespace bench {

struct ClusterOptions {
  int nodes = 1000;
  int pods = 30;                                     ///< of each node
  int evictions = 10;                                ///< of each node in the storm
  std::chrono::milliseconds start_spread{10'000};    ///< kubernetes.startSpread
  std::chrono::milliseconds outage{5'000};           ///< how long the server turns everybody away
  std::chrono::milliseconds between_evictions{500};  ///< of one node
  std::chrono::milliseconds rest{40'000};            ///< how long the cluster is watched doing nothing
  /// At rest so many times as often as in life: what is confirmed every five minutes, a watch's end, bookmarks.
  int haste = 15;
};

struct ClusterResult {
  ClusterPhase start;   ///< all nodes at once, until all are up to date
  ClusterPhase outage;  ///< the server breaks all connections and turns everybody away
  ClusterPhase back;    ///< it takes them again, until all watch
  ClusterPhase ended;   ///< it ends all watches properly, until all watch again
  ClusterPhase storm;   ///< all nodes come under pressure at once and evict, until all is told
  ClusterPhase calm;    ///< the pressure ends everywhere at once
  ClusterPhase rest;
  int evictions = 0;
  Told told{};
  std::size_t pod_bytes = 0;  ///< of JSON, as the server has it
  std::size_t node_bytes = 0;
};

/// The halves of many evictds that talk to an API server (the pods' source and the reporter, with `report: status` and
/// `nodeConditions: conditions`) against one server, all in this process. Raises its limit of open files.
[[nodiscard]] ClusterResult measure_cluster(const ClusterOptions& options);

[[nodiscard]] Report report_of(const ClusterResult& result, const ClusterOptions& options);

}  // namespace bench
