#include "benchmarks/latency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "benchmarks/floor.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/fake_hook.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

constexpr std::int64_t threshold = 300 * mebi;
// Below the threshold by some 75 MiB, and then as far beyond it as leaves the node 75 MiB: the kernel has no reason to
// kill, however late we are.
constexpr std::string_view before = "600Mi";
constexpr std::string_view beyond = "900Mi";

/// A crossing that is answered at once may lie between two looks of the observer: the kernel charges a processor
/// 256 KiB at a time, and takes back what was not used as the process ends. Then it is known from who has answered.
LatencyTrial trial_of(Variant variant, const Course& course, const Stages& stages, std::int64_t level) {
  LatencyTrial trial{.variant = variant};
  const auto crossing = course.crossing ? course.crossing : stages.woken;
  if (!crossing) testbed::fail("the victim did not cross the threshold");
  const auto since = [&](std::optional<Nanoseconds> time) -> std::optional<double> {
    if (!time) return std::nullopt;
    return static_cast<double>(*time - *crossing) / 1e6;
  };
  trial.milliseconds = {since(stages.woken),       since(stages.decided),       since(stages.killed),
                        since(course.growth_over), since(course.first_release), since(course.released),
                        since(stages.cleanup)};
  trial.overshoot_mib = static_cast<double>(course.peak_of_node - level) / mebi;
  return trial;
}

/// Lets the victim grow, with the observer looking, until `act` says what the one who acted did.
template <class Act>
LatencyTrial grow(Scene& scene, const Victim& victim, Variant variant, std::int64_t level, Act act) {
  std::this_thread::sleep_for(500ms);  // what the pod's start stirred up is over
  Observer observer{scene.testbed().node().memory_directory(), victim.cgroup()};
  const auto held = observer.pod_usage();
  victim.tell(beyond);
  const Stages stages = act();
  testbed::wait_until("the victim's memory is back", 60s, [&] { return observer.pod_usage() <= held / 20; });
  std::this_thread::sleep_for(5ms);  // for the observer's last sample
  observer.stop();
  return trial_of(variant, course_of(observer.samples(), level), stages, level);
}

LatencyTrial by_floor(Scene& scene, const Victim& victim) {
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

LatencyTrial by_evictd(Scene& scene, const Victim& victim, Variant variant) {
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
  const Victim victim{scene, fmt::format("victim-{}", number), {"follow", "FILE"}, before};
  testbed::wait_until("the victim holds its memory", 60s,
                      [&] { return scene.testbed().node().memory_usage(victim.pod().cgroup) >= 600 * mebi; });
  return variant == Variant::floor ? by_floor(scene, victim) : by_evictd(scene, victim, variant);
}

}  // namespace

std::vector<LatencyTrial> measure_latency(int trials, std::vector<Variant> variants) {
  Scene scene{threshold};
  std::vector<LatencyTrial> result;
  for (int round = 1; round <= trials; ++round) {
    for (const auto variant : variants) {
      result.push_back(run_trial(scene, variant, static_cast<int>(result.size())));
      const auto& last = result.back();
      progress(fmt::format("trial {}/{}, {}: killed after {:.2f} ms, first release after {:.2f} ms", round, trials,
                           name(variant), last.milliseconds[2].value_or(0), last.milliseconds[4].value_or(0)));
    }
    std::ranges::rotate(variants, variants.begin() + 1);  // nobody is always the one after the slowest
  }
  return result;
}

std::vector<LatencySummary> summarize(const std::vector<LatencyTrial>& trials) {
  std::vector<LatencySummary> result;
  std::vector<Variant> variants;
  for (const auto& trial : trials)
    if (std::ranges::find(variants, trial.variant) == variants.end()) variants.push_back(trial.variant);
  for (const auto variant : variants) {
    LatencySummary summary{.variant = variant};
    std::vector<double> overshoots;
    for (const auto& trial : trials)
      if (trial.variant == variant) overshoots.push_back(trial.overshoot_mib);
    if (overshoots.empty()) continue;
    summary.overshoot_mib = summarize(std::move(overshoots));
    for (std::size_t stage = 0; stage < latency_stages.size(); ++stage) {
      std::vector<double> times;
      for (const auto& trial : trials)
        if (trial.variant == variant && trial.milliseconds[stage]) times.push_back(*trial.milliseconds[stage]);
      summary.milliseconds[stage] = summarize(std::move(times));
    }
    result.push_back(summary);
  }
  return result;
}

}  // namespace bench
