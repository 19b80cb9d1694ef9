#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "benchmarks/report.hpp"

/// The benches, each with what its command's options set. All but reading are told how often in `trials`.
namespace bench {

struct LatencyOptions {
  int trials = 20;  ///< of each variant
  std::vector<std::string> variants{"fast", "cri", "floor"};
  std::string plot{};  ///< an SVG file, empty: none: a strip for each variant with every trial's stages along a
                       ///< logarithmic axis of time
};
/// From the crossing of a threshold to free memory, by stages; the variants in turn.
[[nodiscard]] Report measure_latency(const LatencyOptions& options);

struct OomOptions {
  int trials = 50;  ///< of each hog against each variant
  std::vector<std::string> variants{"fast", "cri", "timer"};
  bool steers = false;  ///< measure_steer() instead
};
/// On a node of 1 GiB with memory.available<100Mi: pods that take memory as fast as it can be had, against each of the
/// variants in turn.
[[nodiscard]] Report measure_oom(const OomOptions& options);
/// On a node of 1 GiB with memory.available<100Mi: one pod is the first of evictd's ranking, another one that which the
/// kernel would take. The threshold comes near, evictd is held back (SIGSTOP), and the node's memory runs out; in turn
/// with the steering (protection.steerOom) and without.
[[nodiscard]] Report measure_steer(const OomOptions& options);

struct BrakeOptions {
  int trials = 20;  ///< with the brake, and as many without
  /// memory.available below so many MiB evicts. An emulated processor, on which SIGTERM takes a second to arrive, needs
  /// more than a real one.
  int threshold_mib = 100;
};
/// On a node of 1 GiB: a pod that takes memory as fast as it can be had and has 20 MiB to write when it is told to end,
/// in turn with the brake (eviction.brake) and without.
[[nodiscard]] Report measure_brake(const BrakeOptions& options);

struct TrimOptions {
  int trials = 5;  ///< with the trim, and as many without
};
/// On a node of 1 GiB a pod uses 300 MiB of file cache, half of which makes the node meet a soft threshold with a grace
/// period of 5 s; in turn with the trim (eviction.trim) and without.
[[nodiscard]] Report measure_trim(const TrimOptions& options);

struct ReadingOptions {
  int trials = 10;  ///< with a tripwire, and as many without
};
/// On cgroup v2: a pod reads on and on, each page once, on a node of 1 GiB. In turn with a tripwire (fast) and without
/// one (sampler), from a node without cache until it is full of it, and 15 s more.
[[nodiscard]] Report measure_reading(const ReadingOptions& options);

struct ScaleOptions {
  int trials = 10;  ///< evictions at each size
  std::vector<std::size_t> pods{10, 110, 500, 1000};
  int idle_seconds = 20;  ///< how long it is watched doing nothing
};
/// What evictd takes on nodes with so many pods. Real cgroups, and a stand-in for the runtime.
[[nodiscard]] Report measure_scale(const ScaleOptions& options);

struct PathOptions {
  int trials = 5;  ///< evictions at each size, each by an evictd of its own
  std::vector<std::size_t> pods{5, 110};
};
/// Counts what evictd does between its wake-up and its first signal, by ptrace(2) and perf_event_open(2). Traced it is
/// slower by far, so no times are told but the gaps. Real cgroups, and a stand-in for the runtime.
[[nodiscard]] Report measure_path(const PathOptions& options);

struct StreamsOptions {
  int trials = 20;                 ///< evictions in each situation
  std::size_t subscribers = 1000;  ///< each on a connection of its own
  int rate = 10'000;               ///< events a second that are asked for
  std::string scheduler = "none";  ///< or "nice" or "roundRobin", as a unit can have it
};
/// On real cgroups, with a stand-in for the runtime: a quiet log and nobody who reads it, then events, then events and
/// subscribers, all in turn and a few evictions at a time.
[[nodiscard]] Report measure_streams(const StreamsOptions& options);

struct ProxyOptions {
  int trials = 2000;  ///< calls of each kind, each way
  int pods = 10;      ///< that containerd lists
};
/// On a real containerd, with the real agent and the real proxy, by one client that makes one call after the other,
/// directly and through the proxy in turn. The last kind asks for a sandbox, with a runtime handler that containerd
/// refuses at once: what the agent's answer takes is in it, and no pod's start.
[[nodiscard]] Report measure_proxy(const ProxyOptions& options);

struct StartsOptions {
  int trials = 100;  ///< pods that start, one after the other
};
/// How soon evictd knows a pod, with all that the runtime says of it, after the runtime has said that it runs:
/// milliseconds from the answer to RunPodSandbox until evictd ranks the pod as one of the runtime's. What asking evictd
/// takes is in it. On the real containerd in PATH, with the real evictd.
[[nodiscard]] Report measure_starts(const StartsOptions& options);

}  // namespace bench
