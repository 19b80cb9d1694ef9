#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/benches.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/variant.hpp"
#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

constexpr std::int64_t cache = 300 * mebi;
constexpr std::int64_t trim_threshold = 50 * mebi;
constexpr auto trim_patience = 60s;  // until the grace period is over, and the eviction that may come of it

/// The runs of a node that is short by file cache alone, with eviction.trim or without.
struct TrimRuns {
  bool trims = false;
  int runs = 0;
  int evictions = 0;                ///< runs in which the pod that held the cache went
  std::vector<double> freed_mib{};  ///< of each trim
  std::vector<double> took_ms{};    ///< of each trim
};

std::string_view name(const TrimRuns& result) { return result.trims ? "trimmed" : "not trimmed"; }

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
  const OwnPod reader{scene.testbed(),
                      {.name = name,
                       .qos = evictd::core::QosClass::BestEffort,
                       .containers = {{.args = {"cache", OwnPod::mount, std::to_string(cache)}}}}};
  testbed::wait_until("the file is read", 2min, [&] { return fs::exists(reader.directory() / "load.ready"); });
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

  const auto evicted = [&] { return agent.events().has(Event::EVICTION_INTENDED, reader.key()); };
  testbed::wait_until("the trim, or the eviction", trim_patience,
                      [&] { return trim_of(agent, reader.key()) || evicted(); });
  if (const auto trim = trim_of(agent, reader.key())) {
    result.freed_mib.push_back(static_cast<double>(trim->freed_bytes()) / mebi);
    result.took_ms.push_back(milliseconds(trim->duration()));
  }
  // The grace period, and more.
  const bool gone = testbed::comes_true(result.trims ? 8s : trim_patience, evicted);
  ++result.runs;
  result.evictions += gone ? 1 : 0;
}

Row figures(const TrimRuns& of) {
  return {{"variant", "", name(of)},
          {"runs", "runs", of.runs},
          {"evictions", "evictions", of.evictions},
          {"freedMiB", "freed, MiB", of.freed_mib, "{median:.0f}/{p90:.0f}"},
          {"tookMs", "took, ms", of.took_ms, "{median:.0f}/{p90:.0f}"}};
}

}  // namespace

Report measure_trim(const TrimOptions& options) {
  std::vector<TrimRuns> results{{.trims = true}, {.trims = false}};
  Scene scene{trim_threshold};
  int number = 0;
  for (int round = 1; round <= options.trials; ++round)
    for (auto& result : results) {
      run_once(scene, result, ++number);
      progress(fmt::format("run {}/{}, {}: {} evictions", round, options.trials, name(result), result.evictions));
    }
  return report_of("trim",
                   fmt::format("A node of 1 GiB that meets a soft threshold, with 5 s of grace, by half of the {} MiB "
                               "of file cache that a pod\nuses. Freed and took: median and p90 of the trims.",
                               cache / mebi),
                   rows_of(results));
}

}  // namespace bench
