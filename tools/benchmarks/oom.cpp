#include "benchmarks/oom.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "benchmarks/kernel_kills.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/statistics.hpp"
#include "testbed/agent.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace json = boost::json;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

constexpr std::int64_t oom_threshold = 100 * mebi;
constexpr std::string_view hog_size = "4Gi";  // more than the node has, whatever becomes of some of its processes

std::vector<std::string> load_of(const Hog& hog) {
  std::vector<std::string> load{"burst", "FILE", std::string(hog_size)};
  if (hog.huge_pages) load.emplace_back("huge");
  load.push_back(std::to_string(hog.processes));
  return load;
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
  return static_cast<double>(*second - deficit->time) / 1e6;
}

void run_once(Scene& scene, OomRuns& result, int number) {
  scene.wait_until_calm();
  auto options = agent_options(result.variant, scene.thresholds());
  options.runtime_directory = scene.runtime_directory();
  testbed::Agent agent{scene.testbed(), options};
  const Victim hog{scene, fmt::format("hog-{}", number), load_of(result.hog), ""};
  std::optional<Victim> another;
  if (result.hog.another) another.emplace(scene, fmt::format("hog-{}-too", number), load_of(result.hog), "");
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
  std::int64_t most = 0;
  for (const auto& sample : observer.samples()) most = std::max(most, sample.node);
  if (const auto late =
          another ? lateness(agent, observer.samples(), {hog.key(), another->key()}, level) : std::nullopt)
    result.second_ms.push_back(*late);
  ++result.runs;
  result.kernel_kills += kills.look() ? 1 : 0;
  result.evictions += evicted ? 1 : 0;
  // For a moment the kernel charges a little more than the limit.
  result.left_mib.push_back(static_cast<double>(std::max<std::int64_t>(Scene::node_memory - most, 0)) / mebi);
}

}  // namespace

std::string name(const Hog& hog) {
  return fmt::format("{} pages, {} process{}{}", hog.huge_pages ? "huge" : "4 KiB", hog.processes,
                     hog.processes == 1 ? "" : "es", hog.another ? ", twice" : "");
}

std::vector<OomRuns> measure_oom(int runs, std::span<const Variant> variants) {
  std::vector<OomRuns> results;
  for (const auto hog : {Hog{false, 1}, Hog{false, 8}, Hog{true, 1}, Hog{true, 8}, Hog{false, 1, true}})
    for (const auto variant : variants) results.push_back({.hog = hog, .variant = variant});
  Scene scene{oom_threshold};
  warm_memory(Scene::node_memory * 2);
  int number = 0;
  for (int round = 1; round <= runs; ++round)
    for (auto& result : results) {
      run_once(scene, result, ++number);
      progress(fmt::format("run {}/{}, {}, {}: {} kernel OOM kills, {:.0f} MiB left", round, runs, name(result.hog),
                           name(result.variant), result.kernel_kills, result.left_mib.back()));
    }
  return results;
}

std::string oom_table(const std::vector<OomRuns>& results) {
  auto table = fmt::format(
      "A node of 1 GiB, memory.available<100Mi. Left: free memory at the worst moment, MiB. Second: median and p90 "
      "of how long\nafter the node was short beyond the first one's memory the second one was chosen.\n\n"
      "{:<31}{:<16}{:>5}{:>14}{:>11}{:>14}{:>13}{:>13}\n",
      "hog", "", "runs", "kernel kills", "evictions", "left, median", "left, least", "second, ms");
  for (const auto& result : results) {
    const double least = result.left_mib.empty() ? 0 : *std::ranges::min_element(result.left_mib);
    const auto second = summarize(result.second_ms);
    fmt::format_to(std::back_inserter(table), "{:<31}{:<16}{:>5}{:>14}{:>11}{:>14.1f}{:>13.1f}{:>13}\n",
                   name(result.hog), name(result.variant), result.runs, result.kernel_kills, result.evictions,
                   summarize(result.left_mib).median, least,
                   result.second_ms.empty() ? "-" : fmt::format("{:.2f}/{:.2f}", second.median, second.p90));
  }
  return table;
}

std::string oom_json(const std::vector<OomRuns>& results) {
  json::array rows;
  for (const auto& result : results)
    rows.push_back(json::object{{"hugePages", result.hog.huge_pages},
                                {"processes", result.hog.processes},
                                {"variant", name(result.variant)},
                                {"runs", result.runs},
                                {"kernelKills", result.kernel_kills},
                                {"evictions", result.evictions},
                                {"leftMiB", json::value_from(result.left_mib)},
                                {"secondMs", json::value_from(result.second_ms)}});
  return json::serialize(json::object{{"bench", "oom"}, {"results", std::move(rows)}});
}

}  // namespace bench
