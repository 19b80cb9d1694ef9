// A pod of very many processes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "hostile/soon.hpp"
#include "testbed/files.hpp"

namespace integration::processes_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using testbed::Event;

TEST_SUITE("hostile") {
  TEST_CASE("a pod of 15,000 processes goes soon, and no other") {
    // They hold memory enough by their page tables and stacks alone.
    testbed::Testbed testbed{{.node = {.memory_limit = 4096 * mebi}}};
    const auto chill = testbed.cri().run_pod(pod("chill", QosClass::Burstable, {"hold", "64Mi"}));
    const auto vital = testbed.cri().run_pod(pod("vital", QosClass::BestEffort, {"hold", "64Mi"}, 2'000'000'000));
    const Follower grower{testbed, "grower"};
    const auto many = testbed.cri().run_pod(pod("many", QosClass::BestEffort, {"fork", "15000"}));
    // Not by the list of them, which the kernel takes long to make while it is to signal them.
    const auto processes = [&] {
      return std::stoi(testbed::read_file(testbed.node().pids_directory(many.cgroup) / "pids.current"));
    };
    testbed::wait_until("all processes are there", 3min, [&] { return processes() > 15'000; });
    const auto available = testbed.node().memory_capacity() - testbed.node().memory_usage();
    // With far fewer descriptors than there are processes to be held by one.
    testbed::Agent agent{testbed,
                         {.thresholds = fmt::format("evictionHard: {{memory.available: {}}}", available - 50 * mebi),
                          .wrapper = {"prlimit", "--nofile=2048:2048"}}};
    agent.wait_for_pods(4);

    grower.hold(150 * mebi);
    testbed::wait_until("its processes are dead", soon, [&] { return processes() <= 1; });
    agent.events().wait_for(Event::CLEANUP_DONE, "default/many", 30s);
    CHECK(testbed.cri().is_running(chill));
    CHECK(testbed.cri().is_running(vital));
    CHECK(testbed.cri().is_running(grower.running));
    for (const auto& event : agent.events().all()) {
      if (event.kind() == Event::EVICTION_INTENDED) CHECK(testbed::key(event.pod()) == "default/many");
      CHECK(event.eviction_failed().step() != "kill");
    }
  }
}

}  // namespace integration::processes_test
