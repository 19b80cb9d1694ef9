#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/commands.hpp"
#include "benchmarks/crowd.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/process_cost.hpp"
#include "benchmarks/scene.hpp"
#include "testbed/agent.hpp"
#include "testbed/testbed.hpp"

namespace bench {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

struct ScaleOptions {
  int trials = 10;  ///< evictions at each size
  std::vector<std::size_t> pods{10, 110, 500, 1000};
  int idle_seconds = 20;  ///< how long it is watched doing nothing
};

/// What is told of the pod's end was read so long after the kill.
double written_down(testbed::Agent& agent, const std::string& pod) {
  const auto told = agent.events().wait_for(Event::EXPLAINED, pod, 60s);
  return -milliseconds(told.explained().snapshot().taken_before_kill());
}

/// Of an eviction: how long after the wake-up it was decided and the first process killed, how long after that the pod
/// was read for `explain` (< 0: before it), and the CPU time of all its threads from before the crossing until the
/// cleanup is done. Lists of one.
Row evict_one(Crowd& crowd, testbed::Agent& agent, const std::string& which) {
  Crowd::Victim victim{crowd};
  victim.wait_until_known(agent);
  const auto before = cost_of(agent.process().pid());
  const auto cleanup = victim.grow(agent);
  const auto after = cost_of(agent.process().pid());

  // Since the wake-up, ms.
  const auto stage = [&](const char* name) {
    const auto found = cleanup.stages().find(name);
    return found == cleanup.stages().end() ? 0 : static_cast<double>(found->second) / 1e3;
  };
  const std::vector decided{stage("decided")};
  const std::vector killed{stage("killed")};
  const std::vector written{written_down(agent, victim.key())};
  victim.leave(agent);
  progress(fmt::format("{}: observed after {:.2f} ms, measured {:.2f} ms, decided {:.2f} ms, killed {:.2f} ms", which,
                       stage("observed"), stage("measured"), decided[0], killed[0]));
  constexpr std::string_view three = "{median:.2f}/{p90:.2f}/{max:.2f}";
  return {{"decidedMs", "decided ms", decided, three},
          {"killedMs", "killed ms", killed, three},
          {"writtenDownMs", "written down ms", written, three},
          {"evictionCpuMs", "CPU of all ms", std::vector{milliseconds((after.cpu - before.cpu).count())}, three}};
}

/// "reactor 0.55, turns 0.25".
std::string by_thread(const std::map<std::string, double>& all) {
  std::string text;
  for (const auto& [name, wakeups] : all) text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", name, wakeups);
  return text;
}

/// Of one processor.
double percent(std::chrono::nanoseconds used, int seconds) { return milliseconds(used.count()) / (10.0 * seconds); }

/// Nobody is connected to the API meanwhile, as on most nodes at most times; how often it looked is asked afterwards,
/// for all the time since its start. All but the memory is of a second.
Row measure_idle(testbed::Agent& agent, const testbed::Agent::Options& started, int seconds, std::size_t pods) {
  constexpr auto time_to_start = 10s;  // it has looked at all pods, and its start is over
  std::this_thread::sleep_for(time_to_start);
  const auto before = cost_of(agent.process().pid());
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const auto after = cost_of(agent.process().pid());
  agent.connect(started);
  agent.wait_for_pods(pods);
  const auto a_second = [&](std::int64_t earlier, std::int64_t later) {
    return static_cast<double>(later - earlier) / seconds;
  };
  std::map<std::string, double> wakeups;  // by thread, of those that woke
  for (const auto& [name, count] : after.wakeups_of)
    if (const auto earlier = before.wakeups_of.contains(name) ? before.wakeups_of.at(name) : 0; count > earlier)
      wakeups[name] = a_second(earlier, count);
  // A busy machine's stalls make it look, too.
  const auto passes = static_cast<double>(agent.status().passes()) / (seconds + time_to_start.count());
  return {
      {"", "pods", pods},
      {"idlePassesPerSecond", "passes", passes, "{:.2f}"},
      {"idleWakeupsPerSecond", "wake-ups", a_second(before.wakeups, after.wakeups), "{:.2f}"},
      {"idleReactorWakeupsPerSecond", "of reactor", a_second(before.reactor_wakeups, after.reactor_wakeups), "{:.2f}"},
      {"idleCpuPercent", "CPU %", percent(after.cpu - before.cpu, seconds), "{:.3f}"},
      {"idleReactorCpuPercent", "of reactor %", percent(after.reactor_cpu - before.reactor_cpu, seconds), "{:.3f}"},
      {"residentMiB", "RSS MiB", static_cast<double>(after.resident_bytes) / mebi, "{:.1f}"},
      {"idleWakeupsPerSecondByThread", wakeups},
      {"", "wake-ups by thread", by_thread(wakeups)}};
}

/// The reactor's, for a list in which nothing is new: the median of some seconds, one or another of which has a look at
/// the node in it as well.
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

/// What evictd takes on a node with so many pods: at work, and at rest.
std::pair<Row, Row> measure_at(std::size_t pods, const ScaleOptions& options) {
  testbed::Testbed testbed{{.start_containerd = false}};
  const RunDirectory run{testbed};
  Crowd crowd{testbed, pods};
  crowd.leave_free(Crowd::free_memory);
  progress(fmt::format("{} pods are there", pods));
  fs::create_directory(testbed.directory() / "thresholds.d");  // as the package does: there it is watched
  auto started = agent_options(Variant::fast, std::string(Crowd::thresholds));
  started.runtime_directory = run.path;
  started.connect = false;
  std::optional<testbed::Agent> agent{std::in_place, testbed, started};
  auto rest = measure_idle(*agent, started, options.idle_seconds, pods);
  const auto list = list_cpu_ms(crowd, *agent);
  Row times;
  for (int number = 1; number <= options.trials; ++number)
    add(times, evict_one(crowd, *agent, fmt::format("{} pods, eviction {}/{}", pods, number, options.trials)));
  // The most processor time of a turn, from its start on.
  const auto busiest = milliseconds(agent->status().reactor().busiest_turn());
  agent.reset();
  return {joined(joined({{"pods", "pods", pods}}, summarized(std::move(times))),
                 {{"quietPassCpuUs", "quiet pass", quiet_pass_cpu_us(testbed, run, pods), "{:.0f} us"},
                  {"listCpuMs", "a list", list, "{:.1f} ms"},
                  {"busiestTurnMs", "busiest turn", busiest, "{:.1f} ms"}}),
          std::move(rest)};
}

Report measure_scale(const ScaleOptions& options) {
  std::vector<Row> work;
  std::vector<Row> rest;
  std::vector<Row> results;
  for (const auto pods : options.pods) {
    const auto [at_work, at_rest] = measure_at(pods, options);
    work.push_back(at_work);
    rest.push_back(at_rest);
    results.push_back(joined(at_work, at_rest));
  }
  return {.json = results_of("scale", results),
          .text = fmt::format("Evicting, median/p90/max of {} evictions at each size. The runtime is a stand-in. "
                              "Written down: since the kill.\n\n{}\nAt rest for {} s, a second.\n\n{}",
                              options.trials, table_of(work), options.idle_seconds, table_of(rest))};
}

}  // namespace

void add_scale(Commands& commands) {
  commands.add({"scale", "what evictd takes, at work and at rest, with more and more pods", "evictions at each size"},
               measure_scale, [](auto& command, auto& options) {
                 number(command, "--pods", options.pods, "the sizes", 1, 5000);
                 number(command, "--idle", options.idle_seconds, "seconds at rest", 1, 3600);
               });
}

}  // namespace bench
