#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "benchmarks/soak/hogs.hpp"
#include "benchmarks/soak/samples.hpp"
#include "benchmarks/statistics.hpp"

namespace bench::soak {

struct Options {
  std::chrono::milliseconds duration = std::chrono::hours{1};
  std::uint64_t seed = 1;  ///< of every random choice
  int pods = 30;           ///< that stand on the node, give or take a fifth
  int subscribers = 100;
};

/// What became of a soak. Medians and the like of nothing are zero.
struct Result {
  double minutes = 0;        ///< less than was asked for where it ended early
  bool interrupted = false;  ///< by the user

  int pods_started = 0;
  int pods_removed = 0;
  int starts_broken_off = 0;  ///< by containerd's end
  int containerd_kills = 0;
  int containerd_stops = 0;

  HogFigures hogs{};
  int evictions = 0;
  int wrong_victims = 0;
  int failed_steps = 0;            ///< of evictions, which went on without them
  int crossings_seen = 0;          ///< from outside
  double longest_crossing_ms = 0;  ///< for how long the node was beyond the threshold at most
  Summary dead_ms{};               ///< from a hog's last growth on, until its processes were gone
  Summary kill_ms{};               ///< from the wake-up to the kill, as evictd says it

  std::uint64_t events = 0;
  std::uint64_t visits = 0;
  std::uint64_t resumed = 0;
  std::uint64_t events_told = 0;  ///< to all visitors together
  std::uint64_t gaps = 0;
  std::uint64_t cut_off = 0;
  std::map<std::string, int> degraded{};  ///< how often a source of wake-ups or of measurements was said to have failed

  std::vector<Sample> samples{};
  double warm_up_minutes = 0;
  std::optional<Trend> resident_mib{};
  std::optional<Trend> files{};
  std::optional<Trend> threads{};
  /// With the same pods and nobody who reads, before all began and after it was over; without the bench's connections.
  Sample settled_before{};
  Sample settled_after{};

  std::size_t violations = 0;
  std::vector<std::string> violated{};  ///< the first of them, a line each
};

/// Runs evictd on a real containerd for so long, with pods that come and go, hogs, a containerd that is killed and
/// subscribers that come and go, and looks at what has to hold. Ends early when it is asked to.
[[nodiscard]] Result run(const Options& options, const std::stop_token& asked);

[[nodiscard]] std::string as_table(const Result& result, const Options& options);
[[nodiscard]] std::string as_json(const Result& result, const Options& options);

}  // namespace bench::soak
