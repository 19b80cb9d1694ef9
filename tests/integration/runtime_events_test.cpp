// What containerd tells of its pods by itself: 1.7 and later. main.cpp leaves the suite out where there is an older
// one.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "testbed/agent.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::runtime_events_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using testbed::Agent;
using testbed::Testbed;

namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// evictd that sees no cgroup of a pod come: it looks for them elsewhere.
struct Listening {
  Testbed testbed{gibi_node};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 100Mi}",
               .node = "podsCgroup: elsewhere",
               .notifier = "fallbackInterval: 5m"}};

  void wait_until_heard(std::size_t times) {
    testbed::wait_until("evictd listens to containerd", 30s,
                        [&] { return count(agent.process().errors(), "tells of its pods' starts and ends") == times; });
  }
  /// While it listens the clock has pods listed once a minute: that can be the reason for one of these at most.
  [[nodiscard]] int known_soon(std::string_view name) {
    int known = 0;
    for (int i = 0; i < pods; ++i) {
      const auto started =
          testbed.cri().run_pod(pod(fmt::format("{}{}", name, i), QosClass::BestEffort, {"hold", "4Mi"}));
      if (testbed::comes_true(5s, [&] { return agent.is_listed(started.uid); })) ++known;
    }
    return known;
  }
  static constexpr int pods = 5;
};

}  // namespace

TEST_SUITE_BEGIN("runtime events");

TEST_CASE("pods are known by what containerd tells, where neither a cgroup nor the clock has them listed") {
  Listening listening;
  listening.wait_until_heard(1);
  CHECK(listening.known_soon("pod") == Listening::pods);
}

TEST_CASE("after containerd was killed evictd listens to the next one") {
  Listening listening;
  listening.wait_until_heard(1);
  listening.testbed.containerd().kill9();
  listening.testbed.containerd().start();
  listening.wait_until_heard(2);
  CHECK(listening.known_soon("after") == Listening::pods);
}

TEST_SUITE_END();

}  // namespace integration::runtime_events_test
