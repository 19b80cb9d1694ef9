#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "fault_scene.hpp"
#include "history.hpp"
#include "stopped.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::clock_test {

using namespace std::chrono_literals;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::chrono::hours a_year{24 * 365};

/// The machine's wall clock is off by so much for as long as this lives.
class WallClockOff {
 public:
  explicit WallClockOff(std::chrono::seconds by) : by_{by} { move(by_); }
  WallClockOff(const WallClockOff&) = delete;
  WallClockOff& operator=(const WallClockOff&) = delete;
  ~WallClockOff() { move(-by_); }

 private:
  static void move(std::chrono::seconds by) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += by.count();
    if (::clock_settime(CLOCK_REALTIME, &now) != 0) testbed::fail_errno("clock_settime");
  }

  std::chrono::seconds by_;
};

}  // namespace

// A machine's clock is not a test's to set: only the guest of tools/vm, which is the test's own, runs these.
TEST_SUITE_BEGIN("own machine" * doctest::skip(std::getenv("EVICTD_TEST_OWN_MACHINE") == nullptr));

// Nothing of the test itself may wait for gRPC's timers meanwhile: they stand still.
TEST_CASE("the clock is set back by a year: a containerd that does not answer costs its deadline, and is found again") {
  FaultScene scene;
  {
    const WallClockOff year_ago{-a_year};
    {
      const Stopped containerd{scene.testbed.containerd().pid()};
      scene.cross();
      scene.wait_until_dead();
      scene.agent->events().wait_for(Event::EVICTION_DELAYED, "default/hog", FaultScene::long_enough);
      scene.testbed.containerd().kill9();
    }
    scene.testbed.containerd().start();
    scene.wait_until_cleaned();
  }
  scene.check();
}

TEST_CASE("the clock is set on by a year, and back by two: a soft threshold's grace period is not over for that") {
  Testbed testbed{integration::gibi_node};
  const Follower hog{testbed, "hog"};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 100Mi}\n"
                             "evictionSoft: {memory.available: 400Mi}\n"
                             "evictionSoftGracePeriod: {memory.available: 1h}\n",
               .keep_history = true}};
  agent.wait_for_pods(1);
  hog.hold(700 * mebi);
  agent.events().wait_for(Event::THRESHOLD_CROSSED, "", FaultScene::long_enough);
  for (const auto by : {a_year, -a_year}) {
    const WallClockOff off{by};
    std::this_thread::sleep_for(testbed::patient(1s));
    CHECK(integration::has_processes(testbed, hog.running));
    CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/hog"));
  }
  const WallClockOff year_ago{-a_year};
  hog.hold(950 * mebi);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", FaultScene::long_enough);
}

TEST_SUITE_END();

}  // namespace integration::clock_test
