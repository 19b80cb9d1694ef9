#include "benchmarks/streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "benchmarks/crowd.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/subscribers.hpp"
#include "benchmarks/variant.hpp"
#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/testbed.hpp"

namespace bench {

namespace json = boost::json;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

constexpr std::int64_t threshold = 300 * mebi;
constexpr std::int64_t free_memory = 600 * mebi;
constexpr std::string_view growth = "450Mi";  // of the free memory: beyond the threshold, and not to the limit
constexpr int evictions_at_once = 5;          // before the next situation has its turn

struct Times {
  std::vector<double> decided;
  std::vector<double> killed;
  std::vector<double> crossing_to_kill;
};

struct Counts {
  double seconds = 0;
  double events = 0;
  double told = 0;
  double missed = 0;
};

double milliseconds(Nanoseconds time) { return static_cast<double>(time) / 1e6; }

/// The node's usage at which the threshold is met.
std::int64_t level_of(testbed::Testbed& testbed) {
  const bool v2 = testbed::cgroup_host().v2;
  const auto node = testbed.node().memory_directory();
  const auto limit = std::stoll(testbed::read_file(node / (v2 ? "memory.max" : "memory.limit_in_bytes")));
  return limit - threshold + inactive_file(testbed::read_file(node / "memory.stat"));
}

void evict_one(testbed::Testbed& testbed, Crowd& crowd, testbed::Agent& agent, const StreamsOptions& options,
               int number, Times& times) {
  const auto name = fmt::format("victim-{}", number);
  const auto file = testbed.directory() / name;
  testbed::replace_file(file, "8Mi");
  crowd.add_victim(name, file);
  agent.wait_for_pods(options.pods + 1);
  std::this_thread::sleep_for(500ms);  // what the pod's start stirred up is over

  const auto level = level_of(testbed);
  const auto pod = testbed.node().pod_cgroup(evictd::core::QosClass::BestEffort, name);
  Observer observer{testbed.node().memory_directory(), testbed.node().memory_directory(pod)};
  testbed::replace_file(file, growth);
  const auto stages = stages_of(agent.events().wait_for(Event::CLEANUP_DONE, "default/" + name, 60s));
  observer.stop();
  crowd.remove(name);
  agent.wait_for_pods(options.pods);

  const auto course = course_of(observer.samples(), level);
  if (!course.crossing || !stages.killed || !stages.decided) testbed::fail("the victim did not cross the threshold");
  times.decided.push_back(milliseconds(*stages.decided - *stages.woken));
  times.killed.push_back(milliseconds(*stages.killed - *stages.woken));
  times.crossing_to_kill.push_back(milliseconds(*stages.killed - *course.crossing));
}

/// An agent with subscribers and events as they are wanted, and some evictions.
class Situation {
 public:
  Situation(std::string name, bool events, std::size_t subscribers)
      : name_{std::move(name)}, events_{events}, subscribers_{subscribers} {}

  void evict(testbed::Testbed& testbed, Crowd& crowd, testbed::Agent& agent, const StreamsOptions& options, int count) {
    std::optional<Subscribers> subscribers;
    if (subscribers_ > 0) subscribers.emplace(agent, subscribers_);
    std::optional<EventLoad> load;
    if (events_) load.emplace(testbed, agent, options.rate);
    std::this_thread::sleep_for(1s);  // it is in its stride
    const auto begin = std::chrono::steady_clock::now();
    const auto made = load ? load->made() : 0;
    const auto told = subscribers ? subscribers->read() : 0;
    const auto missed = subscribers ? subscribers->missed() : 0;
    for (int i = 0; i < count; ++i) {
      evict_one(testbed, crowd, agent, options, ++number(), times_);
      progress(fmt::format("{}: decided after {:.2f} ms, killed {:.2f} ms, {:.2f} ms after the crossing", name_,
                           times_.decided.back(), times_.killed.back(), times_.crossing_to_kill.back()));
    }
    counts_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (load) counts_.events += static_cast<double>(load->made() - made);
    if (!subscribers) return;
    counts_.told += static_cast<double>(subscribers->read() - told);
    counts_.missed += static_cast<double>(subscribers->missed() - missed);
    if (subscribers->lost() > 0) testbed::fail(fmt::format("{} subscribers were cut off", subscribers->lost()));
  }

  [[nodiscard]] StreamsResult result() const {
    return {.situation = name_,
            .subscribers = subscribers_,
            .events = counts_.events / counts_.seconds,
            .told = counts_.told / counts_.seconds,
            .missed = counts_.missed / counts_.seconds,
            .decided_ms = summarize(times_.decided),
            .killed_ms = summarize(times_.killed),
            .crossing_to_kill_ms = summarize(times_.crossing_to_kill)};
  }

 private:
  static int& number() {
    static int victims = 0;
    return victims;
  }

  std::string name_;
  bool events_;
  std::size_t subscribers_;
  Times times_;
  Counts counts_;
};

/// What runs evictd as the unit does with CPUSchedulingResetOnFork=yes and Nice=-10 or CPUSchedulingPolicy=rr: for the
/// deciding thread alone.
std::vector<std::string> scheduled(const std::string& scheduler) {
  if (scheduler == "nice") return {"chrt", "--reset-on-fork", "--other", "0", "nice", "-n", "-10"};
  if (scheduler == "roundRobin") return {"chrt", "--reset-on-fork", "--rr", "1"};
  return {};
}

}  // namespace

std::vector<StreamsResult> measure_streams(const StreamsOptions& options) {
  testbed::Testbed testbed{{.start_containerd = false}};
  Crowd crowd{testbed, options.pods};
  crowd.leave_free(free_memory);
  auto agent_options =
      bench::agent_options(Variant::fast, fmt::format("evictionHard: {{memory.available: {}Mi}}", threshold / mebi));
  // A history of two seconds, or as much as evictd takes: who waits for the end of the eviction must not miss it.
  agent_options.sections +=
      fmt::format("api: {{subscribers: {}, historyLimit: {}, subscriberQueue: {}}}\n", options.subscribers + 16,
                  std::min(2 * options.rate, 1'000'000), std::min(2 * options.rate, 65'536));
  agent_options.kinds = {Event::CLEANUP_DONE};
  agent_options.keep_history = true;
  // A line for each event is another matter.
  agent_options.sections += "log: {level: warn}\n";
  agent_options.wrapper = scheduled(options.scheduler);
  testbed::Agent agent{testbed, agent_options};
  agent.wait_for_pods(options.pods);
  std::array situations{Situation{"quiet, nobody reads", false, 0}, Situation{"events, nobody reads", true, 0},
                        Situation{"events and subscribers", true, options.subscribers}};
  for (int done = 0; done < options.trials; done += evictions_at_once)
    for (auto& situation : situations)
      situation.evict(testbed, crowd, agent, options, std::min(evictions_at_once, options.trials - done));
  std::vector<StreamsResult> results;
  for (const auto& situation : situations) results.push_back(situation.result());
  return results;
}

std::string streams_table(const std::vector<StreamsResult>& results, const StreamsOptions& options) {
  constexpr std::string_view row = "{:<24}{:>8}{:>10}{:>10}{:>12}{:>19}{:>19}{:>19}\n";
  const auto two = [](const Summary& s) { return fmt::format("{:.2f} / {:.2f}", s.median, s.p90); };
  auto table = fmt::format(
      "{} evictions in each situation, {} pods. A second: events, told and missed by all subscribers together.\n"
      "Milliseconds, median / p90: from the wake-up to the decision and to the kill, and from the crossing of the\n"
      "threshold to the kill.\n\n",
      options.trials, options.pods);
  table += fmt::format(row, "", "readers", "events", "told", "missed", "decided", "killed", "since crossing");
  for (const auto& result : results)
    table += fmt::format(row, result.situation, result.subscribers, fmt::format("{:.0f}", result.events),
                         fmt::format("{:.0f}", result.told), fmt::format("{:.0f}", result.missed),
                         two(result.decided_ms), two(result.killed_ms), two(result.crossing_to_kill_ms));
  const auto& quiet = results.front();
  const auto ratio = [](const Summary& s, const Summary& base) {
    return fmt::format("{:.2f} / {:.2f}", s.median / base.median, s.p90 / base.p90);
  };
  for (std::size_t i = 1; i < results.size(); ++i)
    table += fmt::format(row, fmt::format("{} of them to quiet", i == 1 ? "the second" : "the third"), "", "", "", "",
                         ratio(results[i].decided_ms, quiet.decided_ms), ratio(results[i].killed_ms, quiet.killed_ms),
                         ratio(results[i].crossing_to_kill_ms, quiet.crossing_to_kill_ms));
  return table;
}

std::string streams_json(const std::vector<StreamsResult>& results, const StreamsOptions& options) {
  const auto three = [](const Summary& s) {
    return json::object{{"median", s.median}, {"p90", s.p90}, {"max", s.max}};
  };
  json::array rows;
  for (const auto& result : results)
    rows.push_back(json::object{{"situation", result.situation},
                                {"subscribers", result.subscribers},
                                {"eventsPerSecond", result.events},
                                {"toldPerSecond", result.told},
                                {"missedPerSecond", result.missed},
                                {"decidedMs", three(result.decided_ms)},
                                {"killedMs", three(result.killed_ms)},
                                {"crossingToKillMs", three(result.crossing_to_kill_ms)}});
  return json::serialize(json::object{{"bench", "streams"}, {"trials", options.trials}, {"results", std::move(rows)}});
}

}  // namespace bench
