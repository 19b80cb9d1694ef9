#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/commands.hpp"
#include "benchmarks/scene.hpp"
#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

struct TrimOptions {
  int trials = 5;  ///< with the trim, and as many without
};

constexpr std::int64_t cache = 300 * mebi;
constexpr std::int64_t trim_threshold = 50 * mebi;
constexpr auto trim_patience = 60s;  // until the grace period is over, and the eviction that may come of it

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

Row trim_once(Scene& scene, bool trims, int number) {
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
  if (trims) options.eviction = "trim: cache";
  testbed::Agent agent{scene.testbed(), options};

  const auto evicted = [&] { return agent.events().has(Event::EVICTION_INTENDED, reader.key()); };
  testbed::wait_until("the trim, or the eviction", trim_patience,
                      [&] { return trim_of(agent, reader.key()) || evicted(); });
  std::vector<double> freed_mib;
  std::vector<double> took_ms;
  if (const auto trim = trim_of(agent, reader.key())) {
    freed_mib.push_back(static_cast<double>(trim->freed_bytes()) / mebi);
    took_ms.push_back(milliseconds(trim->duration()));
  }
  // The grace period, and more.
  const bool gone = testbed::comes_true(trims ? 8s : trim_patience, evicted);
  return {{"evictions", "evictions", int{gone}},
          {"freedMiB", "freed, MiB", freed_mib, "{median:.0f}/{p90:.0f}"},
          {"tookMs", "took, ms", took_ms, "{median:.0f}/{p90:.0f}"}};
}

Report measure_trim(const TrimOptions& options) {
  Scene scene{trim_threshold};
  const auto rows =
      in_turn(options.trials,
              {{{{"variant", "", "trimmed"}}, [&](int number) { return trim_once(scene, true, number); }},
               {{{"variant", "", "not trimmed"}}, [&](int number) { return trim_once(scene, false, number); }}});
  return report_of("trim",
                   fmt::format("A node of 1 GiB that meets a soft threshold, with 5 s of grace, by half of the {} MiB "
                               "of file cache that a pod\nuses. Freed and took: median and p90 of the trims.",
                               cache / mebi),
                   rows);
}

}  // namespace

void add_trim(Commands& commands) {
  commands.add({"trim", "what eviction.trim gives back, how quickly, and whether a pod goes all the same",
                "with the trim, and as many without"},
               measure_trim);
}

}  // namespace bench
