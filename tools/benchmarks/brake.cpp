#include "benchmarks/brake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

#include "benchmarks/kernel_kills.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/statistics.hpp"
#include "benchmarks/variant.hpp"
#include "testbed/agent.hpp"
#include "testbed/database.hpp"
#include "testbed/failure.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace json = boost::json;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

std::string_view name(const BrakeRuns& result) { return result.brakes ? "braked" : "killed at once"; }

/// Removed with this object, its file as well: the node would go on holding that in its cache.
class OneDatabase {
 public:
  OneDatabase(Scene& scene, const std::string& name) : scene_{scene}, database_{scene.testbed(), name, true} {}
  ~OneDatabase() {
    testbed::report_failure([&] {
      scene_.testbed().cri().remove(database_.running);
      std::filesystem::remove_all(database_.directory);
    });
  }
  OneDatabase(const OneDatabase&) = delete;

  const testbed::Database* operator->() const { return &database_; }

 private:
  Scene& scene_;
  testbed::Database database_;
};

void add_time_held(testbed::Agent& agent, const std::string& pod, std::vector<double>& held_ms) {
  for (const auto& event : agent.events().all()) {
    if (event.kind() != Event::BRAKED || event.braked().phase() == "held" || testbed::key(event.pod()) != pod) continue;
    const auto& duration = event.braked().duration();
    held_ms.push_back(static_cast<double>(duration.seconds()) * 1e3 + static_cast<double>(duration.nanos()) / 1e6);
  }
}

void run_once(Scene& scene, BrakeRuns& result, int number) {
  scene.wait_until_calm();
  auto options = agent_options(Variant::fast, scene.thresholds());
  if (result.brakes) options.eviction = fmt::format("brake: {{time: {}ms}}", testbed::patient(10s).count());
  testbed::Agent agent{scene.testbed(), options};
  // Each has a name of its own: events of an earlier evictd are told as well.
  const auto name = fmt::format("database-{}", number);
  const auto pod = "default/" + name;
  const OneDatabase database{scene, name};
  agent.wait_for_pods(scene.calm_pods() + 1);
  std::this_thread::sleep_for(1500ms);  // what the pod's start stirred up is over, and makes nobody look by chance

  const auto node = scene.testbed().node().memory_directory();
  KernelKills kills{node};
  Observer observer{node, scene.testbed().node().memory_directory(database->running.cgroup)};
  database->grow();
  testbed::wait_until("the database is gone", 2min,
                      [&] { return kills.look() || agent.events().has(Event::CLEANUP_DONE, pod); });
  // Where the kernel was quicker the shortage may be over before evictd has seen it.
  if (kills.look())
    static_cast<void>(testbed::comes_true(10s, [&] { return agent.events().has(Event::CLEANUP_DONE, pod); }));
  else
    agent.events().wait_for(Event::CLEANUP_DONE, pod, 2min);
  kills.look();
  observer.stop();

  std::int64_t most = 0;
  for (const auto& sample : observer.samples()) most = std::max(most, sample.node);
  ++result.runs;
  result.in_order += database->ended_in_order() && database->written() == testbed::Database::size ? 1 : 0;
  result.kernel_kills += kills.look() ? 1 : 0;
  result.others_evicted += scene.calm_pods_run() ? 0 : 1;
  add_time_held(agent, pod, result.held_ms);
  // For a moment the kernel charges a little more than the limit.
  result.left_mib.push_back(static_cast<double>(std::max<std::int64_t>(Scene::node_memory - most, 0)) / mebi);
}

}  // namespace

std::vector<BrakeRuns> measure_brake(const BrakeOptions& options) {
  std::vector<BrakeRuns> results{{.brakes = true}, {.brakes = false}};
  Scene scene{options.threshold_mib * mebi};
  warm_memory(Scene::node_memory * 2);
  int number = 0;
  for (int round = 1; round <= options.runs; ++round)
    for (auto& result : results) {
      run_once(scene, result, ++number);
      progress(fmt::format("run {}/{}, {}: {} ended in order, {} kernel OOM kills, {:.0f} MiB left", round,
                           options.runs, name(result), result.in_order, result.kernel_kills, result.left_mib.back()));
    }
  return results;
}

std::string brake_table(const std::vector<BrakeRuns>& results, const BrakeOptions& options) {
  auto table = fmt::format(
      "A node of 1 GiB, memory.available<{}Mi, and a pod that takes all it can get and has {} MiB to write at its "
      "end.\n"
      "Held: median and p90 of how long the brake held it. Left: free memory at the worst moment, MiB.\n\n"
      "{:<16}{:>5}{:>10}{:>14}{:>13}{:>16}{:>14}{:>13}\n",
      options.threshold_mib, testbed::Database::size / mebi, "", "runs", "in order", "kernel kills", "others went",
      "held, ms", "left, median", "left, least");
  for (const auto& result : results) {
    const double least = result.left_mib.empty() ? 0 : *std::ranges::min_element(result.left_mib);
    const auto held = summarize(result.held_ms);
    fmt::format_to(std::back_inserter(table), "{:<16}{:>5}{:>10}{:>14}{:>13}{:>16}{:>14.1f}{:>13.1f}\n", name(result),
                   result.runs, result.in_order, result.kernel_kills, result.others_evicted,
                   result.held_ms.empty() ? "-" : fmt::format("{:.0f}/{:.0f}", held.median, held.p90),
                   summarize(result.left_mib).median, least);
  }
  return table;
}

std::string brake_json(const std::vector<BrakeRuns>& results) {
  json::array rows;
  for (const auto& result : results)
    rows.push_back(json::object{{"variant", name(result)},
                                {"runs", result.runs},
                                {"inOrder", result.in_order},
                                {"kernelOomKills", result.kernel_kills},
                                {"othersEvicted", result.others_evicted},
                                {"heldMs", json::value_from(result.held_ms)},
                                {"leftMiB", json::value_from(result.left_mib)}});
  return json::serialize(json::object{{"bench", "brake"}, {"results", std::move(rows)}});
}

}  // namespace bench
