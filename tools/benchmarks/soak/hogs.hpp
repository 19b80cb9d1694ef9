#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "benchmarks/soak/crossings.hpp"
#include "benchmarks/soak/dice.hpp"
#include "benchmarks/soak/evictions.hpp"
#include "benchmarks/soak/findings.hpp"
#include "benchmarks/soak/pods.hpp"
#include "testbed/agent.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/testbed.hpp"

namespace bench::soak {

/// Pods that take the node's memory, one act after the other. Each act waits until the agent knows its pods: what it
/// does not know, it cannot evict.
class Hogs {
 public:
  struct Parts {
    testbed::Testbed& testbed;
    const testbed::Agent& agent;
    Keeper& keeper;
    const Crossings& crossings;
    const Evictions& evictions;
    Findings& findings;
  };

  Hogs(Parts parts, std::uint64_t seed) : parts_{parts}, dice_{seed, "hogs"} {}

  /// Finishes the act it is in.
  void run(const std::stop_token& stop);
  /// So many at the same time that cross and must go.
  void cross(int count);
  [[nodiscard]] boost::json::object figures() const;

 private:
  /// A pod whose memory follows a number in a file.
  struct Hog {
    std::filesystem::path file;
    testbed::RunningPod pod;
    void hold(std::int64_t bytes) const;
  };

  void come_near();
  void cross_briefly();
  [[nodiscard]] Hog make(const char* kind);
  void grow(const std::vector<Hog>& hogs, std::int64_t bytes);
  void wait_until_gone(const std::vector<Hog>& hogs);
  [[nodiscard]] bool has_processes(const Hog& hog) const;
  [[nodiscard]] bool wait_for_cleanup(const Hog& hog) const;
  /// What a pod has to hold for the node to stand so far beyond the level.
  [[nodiscard]] std::int64_t size_for(std::int64_t beyond) const;

  Parts parts_;
  Dice dice_;
  int number_ = 0;

  int alone_ = 0;                  // one that crossed the threshold
  int pairs_ = 0;                  // two at the same time, each of which would have crossed it alone
  int near_ = 0;                   // one that came near it and went back: it has to stay
  int brief_ = 0;                  // one that went back as soon as it had crossed: it may go or stay
  int brief_evicted_ = 0;          // of these
  int answered_ = 0;               // of those that had to go
  std::vector<double> dead_ms_{};  // from a hog's last growth was asked for until none of its processes was left
};

}  // namespace bench::soak
