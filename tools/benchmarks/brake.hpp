#pragma once
#include <string>
#include <vector>

namespace bench {

/// The runs of one database, with the brake (eviction.brake) or without.
struct BrakeRuns {
  bool brakes = false;
  int runs = 0;
  int in_order = 0;                ///< runs in which all that it had to write is on the disk
  int kernel_kills = 0;            ///< runs in which the kernel's OOM killer killed a process
  int others_evicted = 0;          ///< runs in which another pod went
  std::vector<double> held_ms{};   ///< how long it was held, of each run in which it was
  std::vector<double> left_mib{};  ///< of each run: how much of the node's memory was free at the worst moment
};

struct BrakeOptions {
  int runs = 20;  ///< with the brake, and as many without
  /// memory.available below so many MiB evicts. An emulated processor, on which SIGTERM takes a second to arrive, needs
  /// more than a real one.
  int threshold_mib = 100;
};

/// On a node of 1 GiB: a pod that takes memory as fast as it can be had and has 20 MiB to write when it is told to end,
/// in turn with the brake and without.
[[nodiscard]] std::vector<BrakeRuns> measure_brake(const BrakeOptions& options);

[[nodiscard]] std::string brake_table(const std::vector<BrakeRuns>& results, const BrakeOptions& options);
[[nodiscard]] std::string brake_json(const std::vector<BrakeRuns>& results);

}  // namespace bench
