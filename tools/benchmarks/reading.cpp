#include <fmt/format.h>

#include <algorithm>
#include <boost/json/value_to.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/commands.hpp"
#include "benchmarks/scene.hpp"
#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;

namespace {

struct ReadingOptions {
  int trials = 10;  ///< with a tripwire, and as many without
};

constexpr std::int64_t reading_threshold = 300 * mebi;
constexpr auto reading_time = 15s;

/// How fast a pod read files while nothing was short, beside an evictd of the variant.
struct ReadingRuns {
  Variant variant = Variant::fast;
  Row filling{};  ///< until the node is full of file cache
  Row full{};
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

/// What is read until `condition`, or for so long. Spurious: wake-ups for nothing.
template <class Condition>
Row read_until(const Reader& reader, testbed::Agent& agent, std::chrono::seconds longest, Condition condition) {
  check_runs(reader, agent);
  const auto trips = spurious_trips(agent);
  const auto stalled = reader.stalled();
  const auto bytes = reader.bytes();
  const auto begin = std::chrono::steady_clock::now();
  while (!condition() && std::chrono::steady_clock::now() - begin < longest) std::this_thread::sleep_for(10ms);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  check_runs(reader, agent);
  const std::vector speed{static_cast<double>(reader.bytes() - bytes) / mebi / took.count()};
  const std::vector stalled_percent{static_cast<double>(reader.stalled() - stalled) / 1e4 / took.count()};
  return {{"", "runs", 1},
          {"mibPerSecond", "MiB/s, median", speed, "{median:.0f}"},
          {"", "least", speed, "{least:.0f}"},
          {"", "most", speed, "{max:.0f}"},
          {"stalledPercent", "stalled", stalled_percent, "{median:.2f} %"},
          {"spurious", "spurious", spurious_trips(agent) - trips}};
}

/// From a node without cache until it is full of it, and on from there.
void read_once(const Reader& reader, Scene& scene, ReadingRuns& result) {
  reader.freeze(true);
  // The kernel frees what it can, and says EAGAIN where that is less.
  std::ofstream{reader.node.memory_directory() / "memory.reclaim"} << "1G";
  testbed::Agent agent{scene.testbed(), agent_options(result.variant, scene.thresholds())};
  agent.wait_for_pods(scene.calm_pods() + 1);
  reader.freeze(false);
  add(result.filling, read_until(reader, agent, 2min, [&] { return reader.has_filled_node(); }));
  add(result.full, read_until(reader, agent, reading_time, [] { return false; }));
}

double median_speed(const Row& row) {
  return summarize(boost::json::value_to<std::vector<double>>(row.at(1).value)).median;
}

/// `last`: the last variant's, for comparison.
Row figures(Variant variant, const char* node, const Row& reading, const Row& last) {
  return joined(joined({{"", "", name(variant)}, {"", "node", node}}, reading),
                {{"ratioOfMedians", "x", median_speed(reading) / median_speed(last), "{:.3f}"}});
}

/// On cgroup v2: a pod reads on and on, each page once. In turn with a tripwire (fast) and without one (sampler), from
/// a node without cache until it is full of it, and 15 s more.
Report measure_reading(const ReadingOptions& options) {
  if (!testbed::cgroup_host().v2)
    testbed::fail("a tripwire is cgroup v2's, and this machine has its memory on v1: see tools/vm/run");
  std::vector<ReadingRuns> results{{.variant = Variant::fast}, {.variant = Variant::sampler}};
  Scene scene{reading_threshold};
  const Reader reader{scene};
  testbed::wait_until("the node is full of file cache", 2min, [&] { return reader.has_filled_node(); });
  for (int round = 1; round <= options.trials; ++round) {
    for (auto& result : results) {
      read_once(reader, scene, result);
      progress(fmt::format("run {}/{}, {}, while the node fills: {}; once it is full: {}", round, options.trials,
                           name(result.variant), line_of(result.filling), line_of(result.full)));
    }
    std::ranges::reverse(results);  // nobody is always the second one
  }
  std::ranges::sort(results, {}, &ReadingRuns::variant);

  std::vector<Row> filling;
  std::vector<Row> full;
  std::vector<Row> results_of_both;
  for (const auto& result : results) {
    filling.push_back(figures(result.variant, "filling", result.filling, results.back().filling));
    full.push_back(figures(result.variant, "full", result.full, results.back().full));
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

}  // namespace

void add_reading(Commands& commands) {
  commands.add({"reading", "what a tripwire costs a pod that only reads files; on cgroup v2",
                "of 15 s with a tripwire, and as many without"},
               measure_reading);
}

}  // namespace bench
