#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "benchmarks/benches.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/variant.hpp"
#include "testbed/agent.hpp"
#include "testbed/database.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

/// The runs of one database, with the brake or without.
struct BrakeRuns {
  bool brakes = false;
  int runs = 0;
  int in_order = 0;                ///< runs in which all that it had to write is on the disk
  int kernel_kills = 0;            ///< runs in which the kernel's OOM killer killed a process
  int others_evicted = 0;          ///< runs in which another pod went
  std::vector<double> held_ms{};   ///< how long it was held, of each run in which it was
  std::vector<double> left_mib{};  ///< of each run: how much of the node's memory was free at the worst moment
};

std::string_view name(const BrakeRuns& result) { return result.brakes ? "braked" : "killed at once"; }

void add_time_held(testbed::Agent& agent, const std::string& pod, std::vector<double>& held_ms) {
  for (const auto& event : agent.events().all()) {
    if (event.kind() != Event::BRAKED || event.braked().phase() == "held" || testbed::key(event.pod()) != pod) continue;
    held_ms.push_back(milliseconds(event.braked().duration()));
  }
}

void run_once(Scene& scene, BrakeRuns& result, int number) {
  scene.wait_until_calm();
  auto options = agent_options(Variant::fast, scene.thresholds());
  if (result.brakes) options.eviction = fmt::format("brake: {{time: {}ms}}", testbed::patient(10s).count());
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

  ++result.runs;
  result.in_order += database.ended_in_order() && database.written() == testbed::Database::size ? 1 : 0;
  result.kernel_kills += kills.look() ? 1 : 0;
  result.others_evicted += scene.calm_pods_run() ? 0 : 1;
  add_time_held(agent, pod.key(), result.held_ms);
  result.left_mib.push_back(Scene::left_mib(observer));
}

Row figures(const BrakeRuns& of) {
  return {{"variant", "", name(of)},
          {"runs", "runs", of.runs},
          {"inOrder", "in order", of.in_order},
          {"kernelOomKills", "kernel kills", of.kernel_kills},
          {"othersEvicted", "others went", of.others_evicted},
          {"heldMs", "held, ms", of.held_ms, "{median:.0f}/{p90:.0f}"},
          {"leftMiB", "left, median", of.left_mib, "{median:.1f}"},
          {"", "left, least", of.left_mib, "{least:.1f}"}};
}

}  // namespace

Report measure_brake(const BrakeOptions& options) {
  std::vector<BrakeRuns> results{{.brakes = true}, {.brakes = false}};
  Scene scene{options.threshold_mib * mebi};
  warm_memory(Scene::node_memory * 2);
  int number = 0;
  for (int round = 1; round <= options.trials; ++round)
    for (auto& result : results) {
      run_once(scene, result, ++number);
      progress(fmt::format("run {}/{}, {}: {} ended in order, {} kernel OOM kills, {:.0f} MiB left", round,
                           options.trials, name(result), result.in_order, result.kernel_kills, result.left_mib.back()));
    }
  return report_of("brake",
                   fmt::format("A node of 1 GiB, memory.available<{}Mi, and a pod that takes all it can get and has {} "
                               "MiB to write at its end.\nHeld: median and p90 of how long the brake held it. Left: "
                               "free memory at the worst moment, MiB.",
                               options.threshold_mib, testbed::Database::size / mebi),
                   rows_of(results));
}

}  // namespace bench
