#include "benchmarks/reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "benchmarks/scene.hpp"
#include "benchmarks/statistics.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t reading_threshold = 300 * mebi;
constexpr auto reading_time = 15s;

void run_once(Scene& scene, const std::filesystem::path& told, ReadingRuns& result) {
  const testbed::Agent agent{scene.testbed(), agent_options(result.variant, scene.thresholds())};
  const auto begin = std::chrono::steady_clock::now();
  const auto before = testbed::read_number(told);
  std::this_thread::sleep_for(reading_time);
  const auto bytes = static_cast<double>(testbed::read_number(told) - before);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  result.mib_per_second.push_back(bytes / mebi / took.count());
  const auto status = agent.status();
  for (const auto& source : status.wake_sources()) result.spurious += source.spurious();
}

double median_of(const ReadingRuns& runs) { return summarize(runs.mib_per_second).median; }

}  // namespace

std::vector<ReadingRuns> measure_reading(int runs) {
  std::vector<ReadingRuns> results{{.variant = Variant::fast}, {.variant = Variant::sampler}};
  Scene scene{reading_threshold};
  const auto directory = scene.testbed().directory() / "files";
  std::filesystem::create_directory(directory);
  testbed::PodSpec spec{.name = "reader", .containers = {{.args = {"stream", "/files"}}}};
  spec.containers[0].mounts.push_back({.host_path = directory, .container_path = "/files"});
  (void)scene.testbed().cri().run_pod(spec);
  testbed::wait_until("the node is full of file cache", 2min,
                      [&] { return scene.testbed().node().memory_usage() > Scene::node_memory - 32 * mebi; });
  for (int round = 1; round <= runs; ++round) {
    for (auto& result : results) {
      run_once(scene, directory / "load.read", result);
      progress(
          fmt::format("run {}/{}, {}: {:.0f} MiB/s", round, runs, name(result.variant), result.mib_per_second.back()));
    }
    std::ranges::reverse(results);  // nobody is always the second one
  }
  std::ranges::sort(results, {}, &ReadingRuns::variant);
  return results;
}

std::string reading_table(const std::vector<ReadingRuns>& results) {
  auto table = fmt::format(
      "A pod reads files on a node of 1 GiB that is full of their cache. x: times the last one's median.\n\n"
      "{:<16}{:>5}{:>16}{:>8}{:>8}{:>9}{:>11}\n",
      "", "runs", "MiB/s, median", "least", "most", "x", "spurious");
  for (const auto& result : results) {
    const auto [least, most] = std::ranges::minmax(result.mib_per_second);
    fmt::format_to(std::back_inserter(table), "{:<16}{:>5}{:>16.0f}{:>8.0f}{:>8.0f}{:>9.3f}{:>11}\n",
                   name(result.variant), result.mib_per_second.size(), median_of(result), least, most,
                   median_of(result) / median_of(results.back()), result.spurious);
  }
  return table;
}

std::string reading_json(const std::vector<ReadingRuns>& results) {
  json::array rows;
  for (const auto& result : results)
    rows.push_back(json::object{{"variant", name(result.variant)},
                                {"mibPerSecond", json::value_from(result.mib_per_second)},
                                {"ratioOfMedians", median_of(result) / median_of(results.back())},
                                {"spurious", result.spurious}});
  return json::serialize(json::object{{"bench", "reading"}, {"results", std::move(rows)}});
}

}  // namespace bench
