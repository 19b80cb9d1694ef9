#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stop_token>

#include "benchmarks/observer.hpp"
#include "benchmarks/soak/dice.hpp"
#include "testbed/node_cgroup.hpp"

namespace bench::soak {

/// How the node's memory stands to the threshold, seen from outside by whoever runs watch().
class Crossings {
 public:
  /// `level`: the working set, in bytes, beyond which the threshold is met.
  Crossings(const testbed::NodeCgroup& node, std::int64_t level) : node_{node}, level_{level} {}

  /// Looks every millisecond until it is asked to stop: evictd ends a crossing within some of them.
  void watch(const std::stop_token& stop) {
    Nanoseconds since = 0;  // when the node went beyond; 0: it is not
    const auto look = [&] {
      const auto now = monotonic_now();
      // It is no more than the usage; to read memory.stat as well takes longer.
      if (node_.memory_usage() <= level_ || working_set() <= level_) {
        since = 0;
      } else if (since == 0) {
        since = now;
        ++count_;
      } else {
        longest_ms_ = std::max(longest_ms_, milliseconds(now - since));
      }
    };
    do look();
    while (pause(stop, std::chrono::milliseconds{1}));
  }
  /// Bytes, as evictd counts them: without the file cache that nobody uses. From any thread.
  [[nodiscard]] std::int64_t working_set() const {
    return std::max<std::int64_t>(node_.memory_usage() - node_.memory_stat("inactive_file"), 0);
  }
  [[nodiscard]] std::int64_t level() const { return level_; }

  /// Once watch() has returned: how often the node went beyond the level and came back, and how long it stayed there at
  /// most.
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] double longest_ms() const { return longest_ms_; }

 private:
  const testbed::NodeCgroup& node_;
  std::int64_t level_;
  int count_ = 0;
  double longest_ms_ = 0;
};

}  // namespace bench::soak
