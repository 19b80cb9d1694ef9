// Something in evictd throws where nothing expects it: memory that is not to be had, or a mistake of its own.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "hostile/soon.hpp"
#include "testbed/agent.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::exceptions_test {

using namespace std::chrono_literals;
using testbed::Agent;
using testbed::Event;
using testbed::Testbed;

namespace {

Agent::Options options() { return {.thresholds = "evictionHard: {memory.available: 300Mi}", .keep_history = true}; }

/// evictd that throws at the crash point.
Agent::Options throwing(const std::string& point) {
  auto result = options();
  result.environment = {"EVICTD_CRASH_AT=" + point, "EVICTD_CRASH_BY=throw"};
  result.program = testbed::crashing_evictd();
  result.wait_until_ready = false;
  return result;
}

/// It ended by itself, and its last line says why.
void check_end(Agent& agent, const std::string& point) {
  CHECK(agent.process().wait(30s) == 1);
  const auto errors = agent.process().errors();
  CAPTURE(errors);
  const auto reason = "thrown on purpose at " + point + "\n";
  CHECK(errors.ends_with(reason));
  CHECK(errors.find(reason) == errors.rfind(reason));
}

}  // namespace

TEST_SUITE_BEGIN("hostile");

TEST_CASE("an exception in the listing of pods ends evictd with its reason, and the next one guards the node") {
  Testbed testbed{gibi_node};
  const Follower hog{testbed, "hog"};
  testbed.containerd().stop();  // until evictd answers, for it does not get far
  {
    Agent agent{testbed, throwing("listing")};
    testbed.containerd().start();
    check_end(agent, "listing");
    CHECK(agent.process().errors().find("evictd: listing the pods: thrown") != std::string::npos);
  }
  Agent agent{testbed, options()};
  agent.wait_for_pods(1);
  hog.hold(800 * mebi);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);
}

TEST_CASE("an exception in an eviction ends evictd with its reason, and the next one finishes the eviction") {
  for (const std::string point : {"kept", "killed"}) {
    CAPTURE(point);
    Testbed testbed{gibi_node};
    const Follower hog{testbed, "hog"};
    {
      Agent agent{testbed, throwing(point)};
      agent.wait_for_pods(1);
      hog.hold(800 * mebi);
      check_end(agent, point);
    }
    Agent agent{testbed, options()};
    testbed::wait_until("the hog is gone, and nothing under way", 60s, [&] {
      return !integration::has_processes(testbed, hog.running) && agent.status().in_flight().empty();
    });
    CHECK(agent.status().evictions() == 0);
  }
}

TEST_SUITE_END();

}  // namespace integration::exceptions_test
