#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/commands.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "testbed/agent.hpp"
#include "testbed/database.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

struct BrakeOptions {
  int trials = 20;  ///< with the brake, and as many without
  /// memory.available below so many MiB evicts. An emulated processor, on which SIGTERM takes a second to arrive, needs
  /// more than a real one.
  int threshold_mib = 100;
};

/// How long the pod was held, ms; nothing where it was not.
std::vector<double> times_held(testbed::Agent& agent, const std::string& pod) {
  std::vector<double> held_ms;
  for (const auto& event : agent.events().all())
    if (event.kind() == Event::BRAKED && event.braked().phase() != "held" && testbed::key(event.pod()) == pod)
      held_ms.push_back(milliseconds(event.braked().duration()));
  return held_ms;
}

Row brake_once(Scene& scene, bool brakes, int number) {
  scene.wait_until_calm();
  auto options = agent_options(Variant::fast, scene.thresholds());
  if (brakes) options.eviction = fmt::format("brake: {{time: {}ms}}", testbed::patient(10s).count());
  testbed::Agent agent{scene.testbed(), options};
  // Each has a name of its own: events of an earlier evictd are told as well.
  const auto name = fmt::format("database-{}", number);
  const testbed::Database database{scene.testbed(), name, true};
  const OwnPod pod{scene.testbed(), database.running, database.directory};
  agent.wait_for_pods(scene.calm_pods() + 1);
  std::this_thread::sleep_for(1500ms);  // what the pod's start stirred up is over, and makes nobody look by chance

  const auto node = scene.testbed().node().memory_directory();
  KernelKills kills{node};
  Observer observer{node, pod.cgroup()};
  database.grow();
  testbed::wait_until("the database is gone", 2min,
                      [&] { return kills.look() || agent.events().has(Event::CLEANUP_DONE, pod.key()); });
  // Where the kernel was quicker the shortage may be over before evictd has seen it.
  if (kills.look())
    static_cast<void>(testbed::comes_true(10s, [&] { return agent.events().has(Event::CLEANUP_DONE, pod.key()); }));
  else
    agent.events().wait_for(Event::CLEANUP_DONE, pod.key(), 2min);
  kills.look();
  observer.stop();

  const auto left_mib = Scene::left_mib(observer);
  return {{"inOrder", "in order", int{database.ended_in_order() && database.written() == testbed::Database::size}},
          {"kernelOomKills", "kernel kills", int{kills.look()}},
          {"othersEvicted", "others went", int{!scene.calm_pods_run()}},
          {"heldMs", "held, ms", times_held(agent, pod.key()), "{median:.0f}/{p90:.0f}"},
          {"leftMiB", "left, median", left_mib, "{median:.1f}"},
          {"", "left, least", left_mib, "{least:.1f}"}};
}

Report measure_brake(const BrakeOptions& options) {
  Scene scene{options.threshold_mib * mebi};
  warm_memory(Scene::node_memory * 2);
  const auto rows =
      in_turn(options.trials,
              {{{{"variant", "", "braked"}}, [&](int number) { return brake_once(scene, true, number); }},
               {{{"variant", "", "killed at once"}}, [&](int number) { return brake_once(scene, false, number); }}});
  return report_of("brake",
                   fmt::format("A node of 1 GiB, memory.available<{}Mi, and a pod that takes all it can get and has {} "
                               "MiB to write at its end.\nHeld: median and p90 of how long the brake held it. Left: "
                               "free memory at the worst moment, MiB.",
                               options.threshold_mib, testbed::Database::size / mebi),
                   rows);
}

}  // namespace

void add_brake(Commands& commands) {
  commands.add({"brake", "how often a pod that must write at its end gets to, with eviction.brake and without",
                "with the brake, and as many without"},
               measure_brake, [](auto& command, auto& options) {
                 number(command, "--threshold", options.threshold_mib, "memory.available below so many MiB evicts", 50,
                        500);
               });
}

}  // namespace bench
