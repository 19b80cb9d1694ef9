#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/benches.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/variant.hpp"
#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;

namespace {

constexpr std::int64_t reading_threshold = 300 * mebi;
constexpr auto reading_time = 15s;

/// How fast a pod read files while nothing was short.
struct Reading {
  std::vector<double> mib_per_second{};   ///< of each run
  std::vector<double> stalled_percent{};  ///< of its time, in which it waited for memory (PSI)
  std::uint64_t spurious = 0;             ///< wake-ups for nothing, of all runs
};

/// Beside an evictd of the variant.
struct ReadingRuns {
  Variant variant = Variant::fast;
  Reading filling{};  ///< until the node is full of file cache
  Reading full{};
};

/// A pod that does nothing but read files.
struct Reader {
  explicit Reader(Scene& scene)
      : node{scene.testbed().node()},
        pod{scene.testbed(), {.name = "reader", .containers = {{.args = {"stream", OwnPod::mount}}}}} {}
  [[nodiscard]] std::int64_t bytes() const { return testbed::read_number(pod.directory() / "load.read"); }
  [[nodiscard]] bool has_filled_node() const { return node.memory_usage() > Scene::node_memory - 32 * mebi; }
  /// µs in which it waited for memory. (PSI, "some")
  [[nodiscard]] std::int64_t stalled() const {
    const auto text = testbed::read_file(pod.cgroup() / "memory.pressure");
    return std::atoll(text.c_str() + text.find("total=") + std::strlen("total="));
  }
  void freeze(bool frozen) const { testbed::write_file(pod.cgroup() / "cgroup.freeze", frozen ? "1" : "0"); }

  testbed::NodeCgroup& node;
  OwnPod pod;
};

std::uint64_t spurious_trips(const testbed::Agent& agent) {
  std::uint64_t trips = 0;
  const auto status = agent.status();
  for (const auto& source : status.wake_sources()) trips += source.spurious();
  return trips;
}

/// Nobody should be evicted for file cache that is read once.
void check_runs(const Reader& reader, testbed::Agent& agent) {
  if (std::filesystem::exists(reader.pod.cgroup())) return;
  std::string told;
  for (const auto& event : agent.events().all()) told += "\n" + event.message();
  testbed::fail("the reader is gone; evictd told:" + told);
}

/// What is read until `condition`, or for so long.
template <class Condition>
void read_until(const Reader& reader, testbed::Agent& agent, Reading& result, std::chrono::seconds longest,
                Condition condition) {
  check_runs(reader, agent);
  const auto trips = spurious_trips(agent);
  const auto stalled = reader.stalled();
  const auto bytes = reader.bytes();
  const auto begin = std::chrono::steady_clock::now();
  while (!condition() && std::chrono::steady_clock::now() - begin < longest) std::this_thread::sleep_for(10ms);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  check_runs(reader, agent);
  result.mib_per_second.push_back(static_cast<double>(reader.bytes() - bytes) / mebi / took.count());
  result.stalled_percent.push_back(static_cast<double>(reader.stalled() - stalled) / 1e4 / took.count());
  result.spurious += spurious_trips(agent) - trips;
}

/// From a node without cache until it is full of it, and on from there.
void run_once(const Reader& reader, Scene& scene, ReadingRuns& result) {
  reader.freeze(true);
  // The kernel frees what it can, and says EAGAIN where that is less.
  std::ofstream{reader.node.memory_directory() / "memory.reclaim"} << "1G";
  testbed::Agent agent{scene.testbed(), agent_options(result.variant, scene.thresholds())};
  agent.wait_for_pods(scene.calm_pods() + 1);
  reader.freeze(false);
  read_until(reader, agent, result.filling, 2min, [&] { return reader.has_filled_node(); });
  read_until(reader, agent, result.full, reading_time, [] { return false; });
}

double median_of(const Reading& reading) { return summarize(reading.mib_per_second).median; }

/// `last`: the last variant's, for comparison.
Row figures(const ReadingRuns& of, const char* node, const Reading& reading, const Reading& last) {
  return {{"", "", name(of.variant)},
          {"", "node", node},
          {"", "runs", reading.mib_per_second.size()},
          {"mibPerSecond", "MiB/s, median", reading.mib_per_second, "{median:.0f}"},
          {"", "least", reading.mib_per_second, "{least:.0f}"},
          {"", "most", reading.mib_per_second, "{max:.0f}"},
          {"ratioOfMedians", "x", median_of(reading) / median_of(last), "{:.3f}"},
          {"stalledPercent", "stalled", reading.stalled_percent, "{median:.2f} %"},
          {"spurious", "spurious", reading.spurious}};
}

}  // namespace

Report measure_reading(const ReadingOptions& options) {
  if (!testbed::cgroup_host().v2)
    testbed::fail("a tripwire is cgroup v2's, and this machine has its memory on v1: see tools/vm/run");
  std::vector<ReadingRuns> results{{.variant = Variant::fast}, {.variant = Variant::sampler}};
  Scene scene{reading_threshold};
  const Reader reader{scene};
  testbed::wait_until("the node is full of file cache", 2min, [&] { return reader.has_filled_node(); });
  for (int round = 1; round <= options.trials; ++round) {
    for (auto& result : results) {
      run_once(reader, scene, result);
      progress(fmt::format("run {}/{}, {}: {:.0f} MiB/s while the node fills, {:.0f} once it is full", round,
                           options.trials, name(result.variant), result.filling.mib_per_second.back(),
                           result.full.mib_per_second.back()));
    }
    std::ranges::reverse(results);  // nobody is always the second one
  }
  std::ranges::sort(results, {}, &ReadingRuns::variant);

  std::vector<Row> filling;
  std::vector<Row> full;
  std::vector<Row> results_of_both;
  for (const auto& result : results) {
    filling.push_back(figures(result, "filling", result.filling, results.back().filling));
    full.push_back(figures(result, "full", result.full, results.back().full));
    results_of_both.push_back(
        {{"variant", name(result.variant)}, {"filling", json_of(filling.back())}, {"full", json_of(full.back())}});
  }
  filling.insert(filling.end(), full.begin(), full.end());
  return {.json = results_of("reading", results_of_both),
          .text =
              "A pod reads files on a node of 1 GiB: while their cache fills the node, and once it is full. x: times "
              "the last one's\nmedian. Stalled: by PSI, the median of what the pod waited for memory.\n\n" +
              table_of(filling)};
}

}  // namespace bench
