#pragma once
#include <string>
#include <vector>

#include "benchmarks/statistics.hpp"

namespace bench {

struct StartsOptions {
  int pods = 100;  ///< that start, one after the other
};

/// How soon evictd knows a pod, with all that the runtime says of it, after the runtime has said that it runs:
/// milliseconds from the answer to RunPodSandbox until evictd ranks the pod as one of the runtime's. What asking evictd
/// takes is in it.
struct Starts {
  std::string runtime;  ///< "containerd 2.1.9"
  Summary known{};
  int before = 0;  ///< pods that it knew before the answer was there
};

/// On the real containerd in PATH, with the real evictd.
[[nodiscard]] Starts measure_starts(const StartsOptions& options);

[[nodiscard]] std::string starts_table(const Starts& starts, const StartsOptions& options);
[[nodiscard]] std::string starts_json(const Starts& starts, const StartsOptions& options);

}  // namespace bench
