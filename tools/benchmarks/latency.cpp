#include "benchmarks/latency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <thread>
#include <utility>

#include "benchmarks/benches.hpp"
#include "benchmarks/floor.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/fake_hook.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace json = boost::json;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

constexpr std::int64_t latency_threshold = 300 * mebi;
// Below the threshold by some 75 MiB, and then as far beyond it as leaves the node 75 MiB: the kernel has no reason to
// kill, however late we are.
constexpr std::string_view near_it = "600Mi";
constexpr std::string_view beyond_it = "900Mi";

/// A crossing that is answered at once may lie between two looks of the observer: the kernel charges a processor
/// 256 KiB at a time, and takes back what was not used as the process ends. Then it is known from who has answered.
LatencyTrial trial_of(Variant variant, const Course& course, const Stages& stages, std::int64_t level) {
  const auto crossing = course.crossing ? course.crossing : stages.woken;
  if (!crossing) testbed::fail("the victim did not cross the threshold");
  const auto since = [&](std::optional<Nanoseconds> time) -> std::optional<double> {
    return time ? std::optional(milliseconds(*time - *crossing)) : std::nullopt;
  };
  return {.variant = variant,
          .figures = {since(stages.woken), since(stages.decided), since(stages.killed), since(course.growth_over),
                      since(course.first_release), since(course.released), since(stages.cleanup),
                      static_cast<double>(course.peak_of_node - level) / mebi}};
}

/// Lets the victim grow, with the observer looking, until `act` says what the one who acted did.
template <class Act>
LatencyTrial grow(Scene& scene, const OwnPod& victim, Variant variant, std::int64_t level, Act act) {
  std::this_thread::sleep_for(500ms);  // what the pod's start stirred up is over
  Observer observer{scene.testbed().node().memory_directory(), victim.cgroup()};
  const auto held = observer.pod_usage();
  victim.tell(beyond_it);
  const Stages stages = act();
  testbed::wait_until("the victim's memory is back", 60s, [&] { return observer.pod_usage() <= held / 20; });
  std::this_thread::sleep_for(5ms);  // for the observer's last sample
  observer.stop();
  return trial_of(variant, course_of(observer.samples(), level), stages, level);
}

LatencyTrial by_floor(Scene& scene, const OwnPod& victim) {
  const auto level = scene.level();
  const Floor floor{scene.testbed().node().memory_directory(), victim.cgroup(), level};
  return grow(scene, victim, Variant::floor, level, [&] {
    testbed::wait_until("the floor has killed", 60s, [&] { return floor.done(); });
    return floor.stages();
  });
}

/// The one that is asked before the kill. Nothing where the variant has none.
std::unique_ptr<testbed::FakeHook> add_hook(Scene& scene, Variant variant, testbed::Agent::Options& options) {
  const bool hangs = variant == Variant::hook_hangs;
  if (!hangs && variant != Variant::hook) return nullptr;
  const auto directory = scene.testbed().directory() / "hooks";
  std::filesystem::create_directory(directory);
  const auto path = directory / "hook";
  std::filesystem::remove(path);  // of an earlier trial
  options.eviction = fmt::format("hooks: {{time: 100ms, directory: {}}}", directory.native());
  return std::make_unique<testbed::FakeHook>(path, hangs ? testbed::hook_does::hang : testbed::hook_does::done);
}

LatencyTrial by_evictd(Scene& scene, const OwnPod& victim, Variant variant) {
  auto options = agent_options(variant, scene.thresholds());
  options.runtime_directory = scene.runtime_directory();
  const auto hook = add_hook(scene, variant, options);
  testbed::Agent agent{scene.testbed(), options};
  agent.wait_for_pods(scene.calm_pods() + 1);
  auto trial = grow(scene, victim, variant, scene.level(),
                    [&] { return stages_of(agent.events().wait_for(Event::CLEANUP_DONE, victim.key(), 60s)); });
  if (!scene.calm_pods_run()) testbed::fail("a calm pod was evicted, too");
  return trial;
}

LatencyTrial run_trial(Scene& scene, Variant variant, int number) {
  scene.wait_until_calm();
  const OwnPod victim{scene.testbed(),
                      {.name = fmt::format("victim-{}", number),
                       .qos = evictd::core::QosClass::BestEffort,
                       .containers = {{.args = {"follow", OwnPod::word}}}},
                      near_it};
  testbed::wait_until("the victim holds its memory", 60s,
                      [&] { return scene.testbed().node().memory_usage(victim.pod().cgroup) >= 600 * mebi; });
  return variant == Variant::floor ? by_floor(scene, victim) : by_evictd(scene, victim, variant);
}

/// The variants in turn.
std::vector<LatencyTrial> run_trials(int rounds, std::vector<Variant> variants) {
  Scene scene{latency_threshold};
  std::vector<LatencyTrial> result;
  for (int round = 1; round <= rounds; ++round) {
    for (const auto variant : variants) {
      result.push_back(run_trial(scene, variant, static_cast<int>(result.size())));
      const auto& last = result.back();
      progress(fmt::format("trial {}/{}, {}: killed after {:.2f} ms, first release after {:.2f} ms", round, rounds,
                           name(variant), last.figures[2].value_or(0), last.figures[4].value_or(0)));
    }
    std::ranges::rotate(variants, variants.begin() + 1);  // nobody is always the one after the slowest
  }
  return result;
}

/// How many times as much as the floor: nothing where the floor's is too small to tell, or comes before the crossing.
void add_ratio(Row& row, std::string_view key, std::string_view heading, double value, double floor) {
  constexpr double least = 0.05;  // what the observer can tell, ms; and a few pages, MiB
  if (floor < least)
    row.emplace_back("", heading, "-");
  else
    row.emplace_back(key, heading, value / floor, value / floor < 100 ? "{:.2f}" : "{:.0f}");
}

/// `floor`: all zero where there is none to compare with.
Row figures(Variant variant, std::string_view figure, const Summary& of, const Summary& floor) {
  Row row{{"", "", name(variant)},
          {"", "", figure},
          {"median", "median", of.median, "{:.2f}"},
          {"p90", "p90", of.p90, "{:.2f}"},
          {"max", "max", of.max, "{:.2f}"}};
  add_ratio(row, "ratioOfMedians", "x median", of.median, floor.median);
  add_ratio(row, "ratioOfP90s", "x p90", of.p90, floor.p90);
  return row;
}

json::object as_json(const LatencyTrial& trial) {
  json::object times;
  for (std::size_t stage = 0; stage < latency_stages.size(); ++stage)
    times[latency_stages[stage]] = trial.figures[stage] ? json::value(*trial.figures[stage]) : json::value(nullptr);
  return {{"variant", name(trial.variant)},
          {"milliseconds", std::move(times)},
          {"overshootMiB", trial.figures[overshoot].value_or(0)}};
}

Report report_of(const std::vector<LatencyTrial>& trials, int rounds) {
  std::vector<Row> table;
  json::object variants;
  for (const auto variant : variants_of(trials)) {
    const auto add = [&](std::size_t figure, std::string_view name) {
      const auto floor = variant == Variant::floor ? Summary{} : summarize(trials, Variant::floor, figure);
      table.push_back(figures(variant, name, summarize(trials, variant, figure), floor));
      return json_of(table.back());
    };
    json::object stages;
    for (std::size_t stage = 0; stage < latency_stages.size(); ++stage)
      stages[latency_stages[stage]] = add(stage, latency_stages[stage]);
    variants[name(variant)] =
        json::object{{"milliseconds", std::move(stages)}, {"overshootMiB", add(overshoot, "overshoot MiB")}};
    table.emplace_back();
  }
  json::array each;
  for (const auto& trial : trials) each.push_back(as_json(trial));
  return {.json = {{"bench", "latency"}, {"variants", std::move(variants)}, {"trials", std::move(each)}},
          .text = fmt::format(
              "Milliseconds since the node's usage crossed the threshold, {} trials each; x: times the floor's.\n\n{}",
              rounds, table_of(table))};
}

}  // namespace

std::vector<Variant> variants_of(const std::vector<LatencyTrial>& trials) {
  std::vector<Variant> variants;
  for (const auto& trial : trials)
    if (std::ranges::find(variants, trial.variant) == variants.end()) variants.push_back(trial.variant);
  return variants;
}

Summary summarize(const std::vector<LatencyTrial>& trials, Variant variant, std::size_t figure) {
  std::vector<double> values;
  for (const auto& trial : trials)
    if (trial.variant == variant && trial.figures[figure]) values.push_back(*trial.figures[figure]);
  return summarize(std::move(values));
}

Report measure_latency(const LatencyOptions& options) {
  const auto variants = variants_named(options.variants);
  std::ofstream plot;
  if (!options.plot.empty()) plot.open(options.plot);
  const auto check = [&] {
    if (plot.fail()) testbed::fail(options.plot + " cannot be written to");
  };
  check();
  const auto trials = run_trials(options.trials, variants);
  if (plot.is_open()) plot << latency_svg(trials) << std::flush;
  check();
  return report_of(trials, options.trials);
}

}  // namespace bench
