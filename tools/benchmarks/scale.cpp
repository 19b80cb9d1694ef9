#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/benches.hpp"
#include "benchmarks/crowd.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/process_cost.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/statistics.hpp"
#include "benchmarks/variant.hpp"
#include "testbed/agent.hpp"
#include "testbed/testbed.hpp"

namespace bench {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

/// What evictd takes on a node with so many pods.
struct ScaleResult {
  std::size_t pods = 0;
  std::vector<double> decided_ms{};       ///< wake-up to decision
  std::vector<double> killed_ms{};        ///< wake-up to the first kill
  std::vector<double> written_down_ms{};  ///< the first kill to when the pod was read for `explain`; < 0: before it
  /// CPU time of all its threads from before the crossing until the cleanup is done.
  std::vector<double> eviction_cpu_ms{};
  double quiet_pass_cpu_us = 0;  ///< CPU time of a look at the node that finds nothing to do
  double list_cpu_ms = 0;        ///< the reactor's CPU time for a list in which nothing is new
  double idle_passes = 0;        ///< a second: a busy machine's stalls make evictd look, too
  double idle_wakeups = 0;       ///< a second, of all its threads
  double idle_reactor_wakeups = 0;
  std::map<std::string, double> idle_wakeups_of{};  ///< a second, by the name of the thread
  double idle_cpu_percent = 0;                      ///< of one processor
  double idle_reactor_cpu_percent = 0;
  double resident_mib = 0;
  double busiest_turn_ms = 0;  ///< the most processor time of a turn, from evictd's start until the last eviction
};

/// What is told of the pod's end was read so long after the kill.
double written_down(testbed::Agent& agent, const std::string& pod) {
  const auto told = agent.events().wait_for(Event::EXPLAINED, pod, 60s);
  return -milliseconds(told.explained().snapshot().taken_before_kill());
}

void evict_one(Crowd& crowd, testbed::Agent& agent, ScaleResult& result, const std::string& which) {
  const Crowd::Victim victim{crowd};
  victim.wait_until_known(agent);
  const auto before = cost_of(agent.process().pid());
  const auto cleanup = victim.grow(agent);
  const auto after = cost_of(agent.process().pid());

  const auto stages = stages_of(cleanup);
  const auto since = [&](std::optional<Nanoseconds> time) {
    return milliseconds(time.value_or(*stages.woken) - *stages.woken);
  };
  const auto stage = [&](const char* name) { return static_cast<double>(cleanup.stages().at(name)) / 1e3; };
  result.decided_ms.push_back(since(stages.decided));
  result.killed_ms.push_back(since(stages.killed));
  result.written_down_ms.push_back(written_down(agent, victim.key()));
  result.eviction_cpu_ms.push_back(milliseconds((after.cpu - before.cpu).count()));
  progress(fmt::format("{}: observed after {:.2f} ms, measured {:.2f} ms, decided {:.2f} ms, killed {:.2f} ms", which,
                       stage("observed"), stage("measured"), result.decided_ms.back(), result.killed_ms.back()));
}

/// Used within so many seconds, in percent of a processor.
double percent(std::chrono::nanoseconds used, int seconds) { return milliseconds(used.count()) / (10.0 * seconds); }

/// Nobody is connected to the API meanwhile, as on most nodes at most times; how often it looked is asked afterwards,
/// for all the time since its start.
void measure_idle(testbed::Agent& agent, const testbed::Agent::Options& started, int seconds, std::size_t pods,
                  ScaleResult& result) {
  constexpr auto time_to_start = 10s;  // it has looked at all pods, and its start is over
  std::this_thread::sleep_for(time_to_start);
  const auto before = cost_of(agent.process().pid());
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const auto after = cost_of(agent.process().pid());
  agent.connect(started);
  agent.wait_for_pods(pods);
  result.idle_passes = static_cast<double>(agent.status().passes()) / (seconds + time_to_start.count());
  result.idle_wakeups = static_cast<double>(after.wakeups - before.wakeups) / seconds;
  result.idle_reactor_wakeups = static_cast<double>(after.reactor_wakeups - before.reactor_wakeups) / seconds;
  for (const auto& [name, wakeups] : after.wakeups_of)
    if (const auto more = wakeups - (before.wakeups_of.contains(name) ? before.wakeups_of.at(name) : 0); more > 0)
      result.idle_wakeups_of[name] = static_cast<double>(more) / seconds;
  result.idle_cpu_percent = percent(after.cpu - before.cpu, seconds);
  result.idle_reactor_cpu_percent = percent(after.reactor_cpu - before.reactor_cpu, seconds);
  result.resident_mib = static_cast<double>(after.resident_bytes) / mebi;
}

/// The median of some seconds, one or another of which has a look at the node in it as well.
double list_cpu_ms(Crowd& crowd, testbed::Agent& agent) {
  std::vector<double> each;
  for (int list = 0; list < 7; ++list) {
    const auto before = cost_of(agent.process().pid());
    crowd.have_listed();
    std::this_thread::sleep_for(1s);
    each.push_back(milliseconds((cost_of(agent.process().pid()).reactor_cpu - before.reactor_cpu).count()));
  }
  return summarize(std::move(each)).median;
}

/// Looks at the node every tenth of a second, and counts the reactor's time alone. The median of some seconds, in one
/// of which the pods may be listed as well.
double quiet_pass_cpu_us(testbed::Testbed& testbed, const RunDirectory& run, std::size_t pods) {
  auto options = agent_options(Variant::fast, std::string(Crowd::thresholds));
  options.notifier = "fallbackInterval: 100ms";
  options.runtime_directory = run.path;
  testbed::Agent agent{testbed, options};
  agent.wait_for_pods(pods);
  std::this_thread::sleep_for(5s);
  std::vector<double> each;
  for (int second = 0; second < 5; ++second) {
    const auto passes = agent.status().passes();
    const auto before = cost_of(agent.process().pid());
    std::this_thread::sleep_for(1s);
    const auto after = cost_of(agent.process().pid());
    const auto looked = agent.status().passes() - passes;
    if (looked > 0)
      each.push_back(static_cast<double>((after.reactor_cpu - before.reactor_cpu).count()) / 1e3 /
                     static_cast<double>(looked));
  }
  return summarize(std::move(each)).median;
}

ScaleResult measure_at(std::size_t pods, const ScaleOptions& options) {
  testbed::Testbed testbed{{.start_containerd = false}};
  const RunDirectory run{testbed};
  Crowd crowd{testbed, pods};
  crowd.leave_free(Crowd::free_memory);
  progress(fmt::format("{} pods are there", pods));
  ScaleResult result{.pods = pods};
  {
    fs::create_directory(testbed.directory() / "thresholds.d");  // as the package does: there it is watched
    auto started = agent_options(Variant::fast, std::string(Crowd::thresholds));
    started.runtime_directory = run.path;
    started.connect = false;
    testbed::Agent agent{testbed, started};
    measure_idle(agent, started, options.idle_seconds, pods, result);
    result.list_cpu_ms = list_cpu_ms(crowd, agent);
    for (int number = 1; number <= options.trials; ++number)
      evict_one(crowd, agent, result, fmt::format("{} pods, eviction {}/{}", pods, number, options.trials));
    result.busiest_turn_ms = milliseconds(agent.status().reactor().busiest_turn());
  }
  result.quiet_pass_cpu_us = quiet_pass_cpu_us(testbed, run, pods);
  return result;
}

/// "reactor 0.55, turns 0.25": those that woke.
std::string by_thread(const ScaleResult& result) {
  std::string text;
  for (const auto& [name, wakeups] : result.idle_wakeups_of)
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", name, wakeups);
  return text;
}

Row at_work(const ScaleResult& of) {
  constexpr std::string_view three = "{median:.2f}/{p90:.2f}/{max:.2f}";
  return {{"pods", "pods", of.pods},
          {"decidedMs", "decided ms", summarize(of.decided_ms), three},
          {"killedMs", "killed ms", summarize(of.killed_ms), three},
          {"writtenDownMs", "written down ms", summarize(of.written_down_ms), three},
          {"evictionCpuMs", "CPU of all ms", summarize(of.eviction_cpu_ms), three},
          {"quietPassCpuUs", "quiet pass", of.quiet_pass_cpu_us, "{:.0f} us"},
          {"listCpuMs", "a list", of.list_cpu_ms, "{:.1f} ms"},
          {"busiestTurnMs", "busiest turn", of.busiest_turn_ms, "{:.1f} ms"}};
}

Row at_rest(const ScaleResult& of) {
  return {{"", "pods", of.pods},
          {"idlePassesPerSecond", "passes", of.idle_passes, "{:.2f}"},
          {"idleWakeupsPerSecond", "wake-ups", of.idle_wakeups, "{:.2f}"},
          {"idleReactorWakeupsPerSecond", "of reactor", of.idle_reactor_wakeups, "{:.2f}"},
          {"idleCpuPercent", "CPU %", of.idle_cpu_percent, "{:.3f}"},
          {"idleReactorCpuPercent", "of reactor %", of.idle_reactor_cpu_percent, "{:.3f}"},
          {"residentMiB", "RSS MiB", of.resident_mib, "{:.1f}"},
          {"idleWakeupsPerSecondByThread", of.idle_wakeups_of},
          {"", "wake-ups by thread", by_thread(of)}};
}

}  // namespace

Report measure_scale(const ScaleOptions& options) {
  std::vector<Row> work;
  std::vector<Row> rest;
  std::vector<Row> results;
  for (const auto pods : options.pods) {
    const auto result = measure_at(pods, options);
    work.push_back(at_work(result));
    rest.push_back(at_rest(result));
    results.push_back(work.back());
    results.back().insert(results.back().end(), rest.back().begin(), rest.back().end());
  }
  auto report = report_of("scale", "", results);
  report.text = fmt::format(
      "Evicting, median/p90/max of {} evictions at each size. The runtime is a stand-in. Written down: since the kill."
      "\n\n{}\nAt rest for {} s, a second.\n\n{}",
      options.trials, table_of(work), options.idle_seconds, table_of(rest));
  return report;
}

}  // namespace bench
