#pragma once
#include <chrono>
#include <cstddef>
#include <optional>

#include "testbed/agent.hpp"
#include "testbed/testbed.hpp"
#include "victims.hpp"

// The fault matrix: something fails while a pod has to go. Expected in each row: that pod goes, nobody else does, each
// event of its eviction is told once, and evictd holds no more descriptors and threads than before.

namespace integration {

/// A node of 1 GiB with a pod that will have to go and two that must not, and evictd.
struct FaultScene {
  static constexpr std::chrono::seconds long_enough{90};

  explicit FaultScene(testbed::Agent::Options options = {}, testbed::Testbed::Options node = gibi_node);

  /// The hog holds too much now.
  void cross() const { hog->hold(550 * mebi); }
  void wait_until_dead();
  void wait_until_cleaned();
  /// What is expected of each row once the hog is gone.
  void check();
  /// The part of it that holds also where the runtime lost the pod, and with it what it would have said of it.
  void check_victims();

  /// What a pod's coming or going stirs up is over.
  static void settle();

  testbed::Testbed testbed;
  testbed::RunningPod chill;
  testbed::RunningPod vital;
  std::optional<testbed::Agent> agent;
  std::optional<Follower> hog;
  std::size_t files = 0;
  std::size_t threads = 0;
};

}  // namespace integration
