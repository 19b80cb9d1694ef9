#include "benchmarks/trim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "benchmarks/scene.hpp"
#include "benchmarks/statistics.hpp"
#include "benchmarks/variant.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace json = boost::json;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

constexpr std::int64_t cache = 300 * mebi;
constexpr std::int64_t trim_threshold = 50 * mebi;
constexpr auto trim_patience = 60s;  // until the grace period is over, and the eviction that may come of it

std::string_view name(const TrimRuns& result) { return result.trims ? "trimmed" : "not trimmed"; }

/// A BestEffort pod that uses so much file cache; it is removed with this object, its file as well.
class Reader {
 public:
  Reader(testbed::Testbed& testbed, const std::string& name)
      : testbed_{testbed}, directory_{testbed.directory() / name} {
    std::filesystem::create_directory(directory_);
    testbed::PodSpec spec{.name = name, .qos = evictd::core::QosClass::BestEffort, .containers = {{}}};
    spec.containers[0].args = {"cache", "/files", std::to_string(cache)};
    spec.containers[0].mounts.push_back({.host_path = directory_, .container_path = "/files"});
    pod_ = testbed.cri().run_pod(spec);
    testbed::wait_until("the file is read", 2min, [&] { return std::filesystem::exists(directory_ / "load.ready"); });
  }
  ~Reader() {
    testbed::report_failure([&] {
      testbed_.cri().remove(pod_);
      std::filesystem::remove_all(directory_);
    });
  }
  Reader(const Reader&) = delete;

 private:
  testbed::Testbed& testbed_;
  std::filesystem::path directory_;
  testbed::RunningPod pod_;
};

/// As evictd counts it, bytes.
std::int64_t available(Scene& scene) {
  const testbed::Agent agent{scene.testbed(), agent_options(Variant::fast, scene.thresholds())};
  const auto status = agent.status();
  for (const auto& signal : status.signals())
    if (signal.signal() == "memory.available") return signal.available();
  testbed::fail("memory.available is not measured");
}

/// Of this pod's file cache.
std::optional<evictd::v1::Trimmed> trim_of(testbed::Agent& agent, const std::string& pod) {
  const auto is_its = [&](const auto& trimmed) { return testbed::key(trimmed.pod()) == pod; };
  for (const auto& event : agent.events().all())
    if (event.kind() == Event::TRIMMED && std::ranges::any_of(event.trimmed().pods(), is_its)) return event.trimmed();
  return std::nullopt;
}

void run_once(Scene& scene, TrimRuns& result, int number) {
  scene.wait_until_calm();
  const auto name = fmt::format("reader-{}", number);  // each of its own: events of an earlier evictd are told as well
  const auto pod = "default/" + name;
  const Reader reader{scene.testbed(), name};
  // It is met half of the cache below where it would not be.
  auto options = agent_options(
      Variant::fast,
      fmt::format("evictionHard: {{memory.available: \"{}\"}}\nevictionSoft: {{memory.available: \"{}\"}}\n"
                  "evictionSoftGracePeriod: {{memory.available: 5s}}\nevictionMaxPodGracePeriod: 1",
                  trim_threshold, available(scene) + cache / 2));
  // Also the pass that first knows the pod comes while the grace period runs.
  options.notifier = "fallbackInterval: 1s";
  if (result.trims) options.eviction = "trim: cache";
  testbed::Agent agent{scene.testbed(), options};

  const auto evicted = [&] { return agent.events().has(Event::EVICTION_INTENDED, pod); };
  testbed::wait_until("the trim, or the eviction", trim_patience, [&] { return trim_of(agent, pod) || evicted(); });
  if (const auto trim = trim_of(agent, pod)) {
    const auto& took = trim->duration();
    result.freed_mib.push_back(static_cast<double>(trim->freed_bytes()) / mebi);
    result.took_ms.push_back(static_cast<double>(took.seconds()) * 1e3 + static_cast<double>(took.nanos()) / 1e6);
  }
  // The grace period, and more.
  const bool gone = testbed::comes_true(result.trims ? 8s : trim_patience, evicted);
  ++result.runs;
  result.evictions += gone ? 1 : 0;
}

}  // namespace

std::vector<TrimRuns> measure_trim(int runs) {
  std::vector<TrimRuns> results{{.trims = true}, {.trims = false}};
  Scene scene{trim_threshold};
  int number = 0;
  for (int round = 1; round <= runs; ++round)
    for (auto& result : results) {
      run_once(scene, result, ++number);
      progress(fmt::format("run {}/{}, {}: {} evictions", round, runs, name(result), result.evictions));
    }
  return results;
}

std::string trim_table(const std::vector<TrimRuns>& results) {
  auto table = fmt::format(
      "A node of 1 GiB that meets a soft threshold, with 5 s of grace, by half of the {} MiB of file cache that a pod\n"
      "uses. Freed and took: median and p90 of the trims.\n\n"
      "{:<16}{:>5}{:>11}{:>14}{:>12}\n",
      cache / mebi, "", "runs", "evictions", "freed, MiB", "took, ms");
  const auto two = [](const std::vector<double>& values) {
    const auto of = summarize(values);
    return values.empty() ? "-" : fmt::format("{:.0f}/{:.0f}", of.median, of.p90);
  };
  for (const auto& result : results)
    fmt::format_to(std::back_inserter(table), "{:<16}{:>5}{:>11}{:>14}{:>12}\n", name(result), result.runs,
                   result.evictions, two(result.freed_mib), two(result.took_ms));
  return table;
}

std::string trim_json(const std::vector<TrimRuns>& results) {
  json::array rows;
  for (const auto& result : results)
    rows.push_back(json::object{{"variant", name(result)},
                                {"runs", result.runs},
                                {"evictions", result.evictions},
                                {"freedMiB", json::value_from(result.freed_mib)},
                                {"tookMs", json::value_from(result.took_ms)}});
  return json::serialize(json::object{{"bench", "trim"}, {"results", std::move(rows)}});
}

}  // namespace bench
