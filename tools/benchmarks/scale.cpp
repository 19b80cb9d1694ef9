#include "benchmarks/scale.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "benchmarks/crowd.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/process_cost.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/variant.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/testbed.hpp"

namespace bench {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

double milliseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

struct Eviction {
  double observed_ms;  // since the wake-up, as all but the last
  double measured_ms;
  double decided_ms;
  double killed_ms;
  double written_down_ms;  // since the first kill
  double cpu_ms;
};

/// What is told of the pod's end was read so long after the kill.
double written_down(testbed::Agent& agent, const std::string& pod) {
  const auto told = agent.events().wait_for(Event::EXPLAINED, pod, 60s);
  const auto& before = told.explained().snapshot().taken_before_kill();
  return -milliseconds(std::chrono::seconds{before.seconds()} + std::chrono::nanoseconds{before.nanos()});
}

Eviction evict_one(testbed::Testbed& testbed, Crowd& crowd, testbed::Agent& agent, std::size_t others, int number) {
  const auto name = fmt::format("victim-{}", number);
  const auto file = testbed.directory() / name;
  testbed::replace_file(file, "8Mi");
  crowd.add_victim(name, file);
  agent.wait_for_pods(others + 1);
  std::this_thread::sleep_for(500ms);  // what the pod's start stirred up is over

  const auto before = cost_of(agent.process().pid());
  testbed::replace_file(file, Crowd::growth);
  const auto cleanup = agent.events().wait_for(Event::CLEANUP_DONE, "default/" + name, 60s);
  const auto after = cost_of(agent.process().pid());
  crowd.remove(name);
  agent.wait_for_pods(others);

  const auto stages = stages_of(cleanup);
  const auto since = [&](std::optional<Nanoseconds> time) {
    return milliseconds(std::chrono::nanoseconds(time.value_or(*stages.woken) - *stages.woken));
  };
  const auto stage = [&](const char* name) { return static_cast<double>(cleanup.stages().at(name)) / 1e3; };
  return {.observed_ms = stage("observed"),
          .measured_ms = stage("measured"),
          .decided_ms = since(stages.decided),
          .killed_ms = since(stages.killed),
          .written_down_ms = written_down(agent, "default/" + name),
          .cpu_ms = milliseconds(after.cpu - before.cpu)};
}

/// Used within so many seconds, in percent of a processor.
double percent(std::chrono::nanoseconds used, int seconds) { return milliseconds(used) / (10.0 * seconds); }

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
    each.push_back(milliseconds(cost_of(agent.process().pid()).reactor_cpu - before.reactor_cpu));
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
      each.push_back(milliseconds(after.reactor_cpu - before.reactor_cpu) * 1000 / static_cast<double>(looked));
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
  std::vector<double> decided;
  std::vector<double> killed;
  std::vector<double> written_down;
  std::vector<double> cpu;
  {
    fs::create_directory(testbed.directory() / "thresholds.d");  // as the package does: there it is watched
    auto started = agent_options(Variant::fast, std::string(Crowd::thresholds));
    started.runtime_directory = run.path;
    started.connect = false;
    testbed::Agent agent{testbed, started};
    measure_idle(agent, started, options.idle_seconds, pods, result);
    result.list_cpu_ms = list_cpu_ms(crowd, agent);
    for (int number = 1; number <= options.evictions; ++number) {
      const auto eviction = evict_one(testbed, crowd, agent, pods, number);
      decided.push_back(eviction.decided_ms);
      killed.push_back(eviction.killed_ms);
      written_down.push_back(eviction.written_down_ms);
      cpu.push_back(eviction.cpu_ms);
      progress(fmt::format(
          "{} pods, eviction {}/{}: observed after {:.2f} ms, measured {:.2f} ms, decided {:.2f} ms, killed {:.2f} ms",
          pods, number, options.evictions, eviction.observed_ms, eviction.measured_ms, eviction.decided_ms,
          eviction.killed_ms));
    }
    const auto busiest = agent.status().reactor().busiest_turn();
    result.busiest_turn_ms =
        milliseconds(std::chrono::seconds{busiest.seconds()} + std::chrono::nanoseconds{busiest.nanos()});
  }
  result.decided_ms = summarize(std::move(decided));
  result.killed_ms = summarize(std::move(killed));
  result.written_down_ms = summarize(std::move(written_down));
  result.eviction_cpu_ms = summarize(std::move(cpu));
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

}  // namespace

std::vector<ScaleResult> measure_scale(const ScaleOptions& options) {
  std::vector<ScaleResult> results;
  for (const auto pods : options.pods) results.push_back(measure_at(pods, options));
  return results;
}

std::string scale_table(const std::vector<ScaleResult>& results, const ScaleOptions& options) {
  const auto three = [](const Summary& s) { return fmt::format("{:.2f}/{:.2f}/{:.2f}", s.median, s.p90, s.max); };
  constexpr std::string_view work = "{:>5} {:>20} {:>20} {:>20} {:>22} {:>12} {:>9} {:>12}\n";
  auto table = fmt::format(
      "Evicting, median/p90/max of {} evictions at each size. The runtime is a stand-in. Written down: since the "
      "kill.\n\n",
      options.evictions);
  table += fmt::format(work, "pods", "decided ms", "killed ms", "written down ms", "CPU of all ms", "quiet pass",
                       "a list", "busiest turn");
  for (const auto& result : results)
    table +=
        fmt::format(work, result.pods, three(result.decided_ms), three(result.killed_ms), three(result.written_down_ms),
                    three(result.eviction_cpu_ms), fmt::format("{:.0f} us", result.quiet_pass_cpu_us),
                    fmt::format("{:.1f} ms", result.list_cpu_ms), fmt::format("{:.1f} ms", result.busiest_turn_ms));

  constexpr std::string_view rest = "{:>5} {:>10} {:>10} {:>12} {:>8} {:>14} {:>9}\n";
  table += fmt::format("\nAt rest for {} s, a second.\n\n", options.idle_seconds);
  table += fmt::format(rest, "pods", "passes", "wake-ups", "of reactor", "CPU %", "of reactor %", "RSS MiB");
  const auto two = [](double value) { return fmt::format("{:.2f}", value); };
  const auto three_places = [](double value) { return fmt::format("{:.3f}", value); };
  for (const auto& result : results)
    table += fmt::format(rest, result.pods, two(result.idle_passes), two(result.idle_wakeups),
                         two(result.idle_reactor_wakeups), three_places(result.idle_cpu_percent),
                         three_places(result.idle_reactor_cpu_percent), fmt::format("{:.1f}", result.resident_mib));
  table += "\nThe wake-ups at rest by thread.\n\n";
  for (const auto& result : results) table += fmt::format("{:>5} {}\n", result.pods, by_thread(result));
  return table;
}

std::string scale_json(const std::vector<ScaleResult>& results) {
  const auto three = [](const Summary& s) {
    return json::object{{"median", s.median}, {"p90", s.p90}, {"max", s.max}};
  };
  json::array rows;
  for (const auto& result : results) {
    json::object threads;
    for (const auto& [name, wakeups] : result.idle_wakeups_of) threads[name] = wakeups;
    rows.push_back(json::object{{"pods", result.pods},
                                {"decidedMs", three(result.decided_ms)},
                                {"killedMs", three(result.killed_ms)},
                                {"writtenDownMs", three(result.written_down_ms)},
                                {"evictionCpuMs", three(result.eviction_cpu_ms)},
                                {"quietPassCpuUs", result.quiet_pass_cpu_us},
                                {"listCpuMs", result.list_cpu_ms},
                                {"busiestTurnMs", result.busiest_turn_ms},
                                {"idlePassesPerSecond", result.idle_passes},
                                {"idleWakeupsPerSecond", result.idle_wakeups},
                                {"idleReactorWakeupsPerSecond", result.idle_reactor_wakeups},
                                {"idleReactorCpuPercent", result.idle_reactor_cpu_percent},
                                {"idleCpuPercent", result.idle_cpu_percent},
                                {"idleWakeupsPerSecondByThread", std::move(threads)},
                                {"residentMiB", result.resident_mib}});
  }
  return json::serialize(json::object{{"bench", "scale"}, {"results", std::move(rows)}});
}

}  // namespace bench
