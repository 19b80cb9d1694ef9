#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "benchmarks/benches.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/variant.hpp"
#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

constexpr std::int64_t oom_threshold = 100 * mebi;
constexpr std::string_view hog_size = "4Gi";  // more than the node has, whatever becomes of some of its processes

/// A pod that takes memory as fast as it can be had.
struct Hog {
  bool huge_pages = false;  ///< by madvise; otherwise none
  int processes = 1;
  bool another = false;  ///< a second pod does the same 5 ms later
};

/// The runs of one hog against one variant.
struct OomRuns {
  Hog hog;
  Variant variant;
  int runs = 0;
  int kernel_kills = 0;            ///< runs in which the kernel's OOM killer killed a process
  int evictions = 0;               ///< runs in which evictd evicted each hog, soon after the kernel's kill as well
  std::vector<double> left_mib{};  ///< of each run: how much of the node's memory was free at the worst moment
  /// With another: how long after the node was short beyond what the first still held evictd chose the second, ms. Less
  /// than nothing where it did so before.
  std::vector<double> second_ms{};
};

/// "4 KiB pages, 1 process", "4 KiB pages, 1 process, twice"
std::string name(const Hog& hog) {
  return fmt::format("{} pages, {} process{}{}", hog.huge_pages ? "huge" : "4 KiB", hog.processes,
                     hog.processes == 1 ? "" : "es", hog.another ? ", twice" : "");
}

testbed::PodSpec pod_of(const Hog& hog, std::string name) {
  std::vector<std::string> load{"burst", OwnPod::word, std::string(hog_size)};
  if (hog.huge_pages) load.emplace_back("huge");
  load.push_back(std::to_string(hog.processes));
  return {
      .name = std::move(name), .qos = evictd::core::QosClass::BestEffort, .containers = {{.args = std::move(load)}}};
}

/// How long after the deficit that the first one's memory does not cover the second one was chosen, ms. Nothing where
/// the hog that is watched did not go first, or there was no such deficit.
std::optional<double> lateness(testbed::Agent& agent, const std::vector<Sample>& samples,
                               const std::pair<std::string, std::string>& hogs, std::int64_t level) {
  const auto chosen = [&](const std::string& key) -> std::optional<Nanoseconds> {
    if (!agent.events().has(Event::EVICTION_INTENDED, key)) return std::nullopt;
    const auto intent = agent.events().wait_for(Event::EVICTION_INTENDED, key, 1s);
    const auto decided = intent.stages().find("decided");
    if (decided == intent.stages().end()) return std::nullopt;
    return intent.wake().monotonic_ns() + decided->second * 1000;
  };
  const auto first = chosen(hogs.first);
  const auto second = chosen(hogs.second);
  if (!first || !second || *second < *first) return std::nullopt;
  const auto deficit = std::ranges::find_if(
      samples, [&](const auto& sample) { return sample.time >= *first && sample.node - sample.pod > level; });
  if (deficit == samples.end()) return std::nullopt;
  return milliseconds(*second - deficit->time);
}

void run_once(Scene& scene, OomRuns& result, int number) {
  scene.wait_until_calm();
  auto options = agent_options(result.variant, scene.thresholds());
  options.runtime_directory = scene.runtime_directory();
  testbed::Agent agent{scene.testbed(), options};
  const OwnPod hog{scene.testbed(), pod_of(result.hog, fmt::format("hog-{}", number))};
  std::optional<OwnPod> another;
  if (result.hog.another) another.emplace(scene.testbed(), pod_of(result.hog, fmt::format("hog-{}-too", number)));
  agent.wait_for_pods(scene.calm_pods() + (another ? 2 : 1));
  std::this_thread::sleep_for(1500ms);  // what the pod's start stirred up is over, and makes nobody look by chance

  KernelKills kills{scene.testbed().node().memory_directory()};
  Observer observer{scene.testbed().node().memory_directory(), hog.cgroup()};
  const auto level = scene.level();
  hog.tell("go");
  if (another) {
    std::this_thread::sleep_for(5ms);
    another->tell("go");
  }
  bool evicted = false;
  const auto look = [&] {
    evicted = agent.events().has(Event::CONTAINERS_KILLED, hog.key()) &&
              (!another || agent.events().has(Event::CONTAINERS_KILLED, another->key()));
    return kills.look() || evicted;
  };
  testbed::wait_until("the hog is evicted or killed by the kernel", 2min, look);
  // Whoever of the two comes second counts as well.
  std::ignore = testbed::comes_true(2s, [&] {
    look();
    return evicted && kills.look();
  });
  observer.stop();
  if (const auto late =
          another ? lateness(agent, observer.samples(), {hog.key(), another->key()}, level) : std::nullopt)
    result.second_ms.push_back(*late);
  ++result.runs;
  result.kernel_kills += kills.look() ? 1 : 0;
  result.evictions += evicted ? 1 : 0;
  result.left_mib.push_back(Scene::left_mib(observer));
}

Row figures(const OomRuns& of) {
  return {{"hugePages", of.hog.huge_pages},
          {"processes", of.hog.processes},
          {"", "hog", name(of.hog)},
          {"variant", "", name(of.variant)},
          {"runs", "runs", of.runs},
          {"kernelKills", "kernel kills", of.kernel_kills},
          {"evictions", "evictions", of.evictions},
          {"leftMiB", "left, median", of.left_mib, "{median:.1f}"},
          {"", "left, least", of.left_mib, "{least:.1f}"},
          {"secondMs", "second, ms", of.second_ms, "{median:.2f}/{p90:.2f}"}};
}

}  // namespace

Report measure_oom(const OomOptions& options) {
  if (options.steers) return measure_steer(options);
  std::vector<OomRuns> results;
  for (const auto hog : {Hog{false, 1}, Hog{false, 8}, Hog{true, 1}, Hog{true, 8}, Hog{false, 1, true}})
    for (const auto variant : variants_named(options.variants)) results.push_back({.hog = hog, .variant = variant});
  Scene scene{oom_threshold};
  warm_memory(Scene::node_memory * 2);
  int number = 0;
  for (int round = 1; round <= options.trials; ++round)
    for (auto& result : results) {
      run_once(scene, result, ++number);
      progress(fmt::format("run {}/{}, {}, {}: {} kernel OOM kills, {:.0f} MiB left", round, options.trials,
                           name(result.hog), name(result.variant), result.kernel_kills, result.left_mib.back()));
    }
  return report_of(
      "oom",
      "A node of 1 GiB, memory.available<100Mi. Left: free memory at the worst moment, MiB. Second: median "
      "and p90 of how long\nafter the node was short beyond the first one's memory the second one was "
      "chosen.",
      rows_of(results));
}

}  // namespace bench
