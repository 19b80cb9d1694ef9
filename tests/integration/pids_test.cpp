#include <doctest/doctest.h>

#include "testbed/agent.hpp"

namespace integration::pids_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;

TEST_CASE("under a limit of process ids the pod that forks most is evicted") {
  testbed::Testbed testbed{{.node = {.memory_limit = 1 << 30, .pids_limit = 300}}};
  const auto quiet =
      testbed.cri().run_pod({.name = "quiet", .qos = QosClass::BestEffort, .containers = {{.args = {"fork", "5"}}}});
  testbed::Agent agent{testbed,
                       {.thresholds = "evictionHard: {pid.available: '150'}", .notifier = "fallbackInterval: 500ms"}};
  agent.wait_for_pods(1);
  const auto forks =
      testbed.cri().run_pod({.name = "forks", .qos = QosClass::BestEffort, .containers = {{.args = {"fork", "180"}}}});

  // By its uid: it may have to go before the runtime has told its name.
  const auto done = agent.events().wait_for("the end of the pod that forks", 60s, [&](const Event& event) {
    return event.kind() == Event::CLEANUP_DONE && forks.cgroup.ends_with(event.pod().uid());
  });
  CHECK(done.signal() == "pid.available");
  CHECK(testbed.cri().is_running(quiet));
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/quiet"));
}

}  // namespace integration::pids_test
