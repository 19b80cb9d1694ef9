#include "benchmarks/reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

#include "benchmarks/scene.hpp"
#include "benchmarks/statistics.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t reading_threshold = 300 * mebi;
constexpr auto reading_time = 15s;

/// A pod that does nothing but read files.
struct Reader {
  explicit Reader(Scene& scene) : node{scene.testbed().node()}, files{scene.testbed().directory() / "files"} {
    std::filesystem::create_directory(files);
    testbed::PodSpec spec{.name = "reader", .containers = {{.args = {"stream", "/files"}}}};
    spec.containers[0].mounts.push_back({.host_path = files, .container_path = "/files"});
    cgroup = node.memory_directory(scene.testbed().cri().run_pod(spec).cgroup);
  }
  [[nodiscard]] std::int64_t bytes() const { return testbed::read_number(files / "load.read"); }
  [[nodiscard]] bool has_filled_node() const { return node.memory_usage() > Scene::node_memory - 32 * mebi; }
  /// µs in which it waited for memory. (PSI, "some")
  [[nodiscard]] std::int64_t stalled() const {
    const auto text = testbed::read_file(cgroup / "memory.pressure");
    return std::atoll(text.c_str() + text.find("total=") + std::strlen("total="));
  }
  void freeze(bool frozen) const { testbed::write_file(cgroup / "cgroup.freeze", frozen ? "1" : "0"); }

  testbed::NodeCgroup& node;
  std::filesystem::path files;
  std::filesystem::path cgroup{};
};

std::uint64_t spurious_trips(const testbed::Agent& agent) {
  std::uint64_t trips = 0;
  const auto status = agent.status();
  for (const auto& source : status.wake_sources()) trips += source.spurious();
  return trips;
}

/// Nobody should be evicted for file cache that is read once.
void check_runs(const Reader& reader, testbed::Agent& agent) {
  if (std::filesystem::exists(reader.cgroup)) return;
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

}  // namespace

std::vector<ReadingRuns> measure_reading(int runs) {
  std::vector<ReadingRuns> results{{.variant = Variant::fast}, {.variant = Variant::sampler}};
  Scene scene{reading_threshold};
  const Reader reader{scene};
  testbed::wait_until("the node is full of file cache", 2min, [&] { return reader.has_filled_node(); });
  for (int round = 1; round <= runs; ++round) {
    for (auto& result : results) {
      run_once(reader, scene, result);
      progress(fmt::format("run {}/{}, {}: {:.0f} MiB/s while the node fills, {:.0f} once it is full", round, runs,
                           name(result.variant), result.filling.mib_per_second.back(),
                           result.full.mib_per_second.back()));
    }
    std::ranges::reverse(results);  // nobody is always the second one
  }
  std::ranges::sort(results, {}, &ReadingRuns::variant);
  return results;
}

std::string reading_table(const std::vector<ReadingRuns>& results) {
  auto table = fmt::format(
      "A pod reads files on a node of 1 GiB: while their cache fills the node, and once it is full. x: times the last "
      "one's\nmedian. Stalled: by PSI, the median of what the pod waited for memory.\n\n"
      "{:<16}{:<9}{:>5}{:>16}{:>8}{:>8}{:>9}{:>11}{:>11}\n",
      "", "node", "runs", "MiB/s, median", "least", "most", "x", "stalled", "spurious");
  const auto add = [&](const ReadingRuns& of, std::string_view node, const Reading& reading, const Reading& last) {
    const auto [least, most] = std::ranges::minmax(reading.mib_per_second);
    fmt::format_to(std::back_inserter(table), "{:<16}{:<9}{:>5}{:>16.0f}{:>8.0f}{:>8.0f}{:>9.3f}{:>9.2f} %{:>11}\n",
                   name(of.variant), node, reading.mib_per_second.size(), median_of(reading), least, most,
                   median_of(reading) / median_of(last), summarize(reading.stalled_percent).median, reading.spurious);
  };
  for (const auto& result : results) add(result, "filling", result.filling, results.back().filling);
  for (const auto& result : results) add(result, "full", result.full, results.back().full);
  return table;
}

std::string reading_json(const std::vector<ReadingRuns>& results) {
  const auto object = [](const Reading& reading, const Reading& last) {
    return json::object{{"mibPerSecond", json::value_from(reading.mib_per_second)},
                        {"ratioOfMedians", median_of(reading) / median_of(last)},
                        {"stalledPercent", json::value_from(reading.stalled_percent)},
                        {"spurious", reading.spurious}};
  };
  json::array rows;
  for (const auto& result : results)
    rows.push_back(json::object{{"variant", name(result.variant)},
                                {"filling", object(result.filling, results.back().filling)},
                                {"full", object(result.full, results.back().full)}});
  return json::serialize(json::object{{"bench", "reading"}, {"results", std::move(rows)}});
}

}  // namespace bench
