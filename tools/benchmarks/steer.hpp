#pragma once
#include <string>
#include <vector>

namespace bench {

/// The runs in which the kernel's OOM killer came first, with protection.steerOom or without.
struct SteerRuns {
  bool steers = false;
  int runs = 0;
  int first = 0;    ///< runs in which it took the first of evictd's ranking
  int another = 0;  ///< runs in which it took another pod
};

/// On a node of 1 GiB with memory.available<100Mi: one pod is the first of evictd's ranking, another one that which the
/// kernel would take. The threshold comes near, evictd is held back (SIGSTOP), and the node's memory runs out; in turn
/// with the steering and without, so many runs each.
[[nodiscard]] std::vector<SteerRuns> measure_steer(int runs);

[[nodiscard]] std::string steer_table(const std::vector<SteerRuns>& results);
[[nodiscard]] std::string steer_json(const std::vector<SteerRuns>& results);

}  // namespace bench
