#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "benchmarks/commands.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;

namespace {

struct OomOptions {
  int trials = 50;  ///< of each hog against each variant
  std::vector<std::string> variants{"fast", "cri", "timer"};
  bool steers = false;  ///< measure_steer() instead
};

constexpr std::int64_t oom_threshold = 100 * mebi;
constexpr auto steer_patience = 2min;
constexpr std::string_view hog_size = "4Gi";  // more than the node has, whatever becomes of some of its processes

/// A pod that takes memory as fast as it can be had.
struct Hog {
  bool huge_pages = false;  ///< by madvise; otherwise none
  int processes = 1;
  bool another = false;  ///< a second pod does the same 5 ms later
};

/// "4 KiB pages, 1 process", "4 KiB pages, 1 process, twice"
std::string name(const Hog& hog) {
  return fmt::format("{} pages, {} process{}{}", hog.huge_pages ? "huge" : "4 KiB", hog.processes,
                     hog.processes == 1 ? "" : "es", hog.another ? ", twice" : "");
}

testbed::PodSpec pod_of(const Hog& hog, std::string name) {
  std::vector<std::string> load{"burst", OwnPod::word, std::string(hog_size)};
  if (hog.huge_pages) load.emplace_back("huge");
  load.push_back(std::to_string(hog.processes));
  return {.name = std::move(name), .qos = QosClass::BestEffort, .containers = {{.args = std::move(load)}}};
}

/// How long after the node was short beyond what the first one still held the second one was chosen, ms: a list of one.
/// Nothing where the hog that is watched did not go first, or there was no such deficit.
std::vector<double> lateness(testbed::Agent& agent, const std::vector<Sample>& samples,
                             const std::pair<std::string, std::string>& hogs, std::int64_t level) {
  const auto chosen = [&](const std::string& key) -> std::optional<Nanoseconds> {
    if (!agent.events().has(Event::EVICTION_INTENDED, key)) return std::nullopt;
    return stages_of(agent.events().wait_for(Event::EVICTION_INTENDED, key, 1s)).decided;
  };
  const auto first = chosen(hogs.first);
  const auto second = chosen(hogs.second);
  if (!first || !second || *second < *first) return {};
  const auto deficit = std::ranges::find_if(
      samples, [&](const auto& sample) { return sample.time >= *first && sample.node - sample.pod > level; });
  if (deficit == samples.end()) return {};
  return {milliseconds(*second - deficit->time)};
}

Row burst_once(Scene& scene, const Hog& burst, Variant variant, int number) {
  scene.wait_until_calm();
  auto options = agent_options(variant, scene.thresholds());
  options.runtime_directory = scene.runtime_directory();
  testbed::Agent agent{scene.testbed(), options};
  const OwnPod hog{scene.testbed(), pod_of(burst, fmt::format("hog-{}", number))};
  std::optional<OwnPod> another;
  if (burst.another) another.emplace(scene.testbed(), pod_of(burst, fmt::format("hog-{}-too", number)));
  agent.wait_for_pods(scene.calm_pods() + (another ? 2 : 1));
  std::this_thread::sleep_for(1500ms);  // what the pod's start stirred up is over, and makes nobody look by chance

  KernelKills kills{scene.testbed().node().memory_directory()};
  Observer observer{scene.testbed().node().memory_directory(), hog.cgroup()};
  const auto level = scene.level();
  hog.tell("go");
  if (another) {
    std::this_thread::sleep_for(5ms);
    another->tell("go");
  }
  bool evicted = false;
  const auto look = [&] {
    evicted = agent.events().has(Event::CONTAINERS_KILLED, hog.key()) &&
              (!another || agent.events().has(Event::CONTAINERS_KILLED, another->key()));
    return kills.look() || evicted;
  };
  testbed::wait_until("the hog is evicted or killed by the kernel", 2min, look);
  // Whoever of the two comes second counts as well.
  std::ignore = testbed::comes_true(2s, [&] {
    look();
    return evicted && kills.look();
  });
  observer.stop();
  const auto left_mib = Scene::left_mib(observer);
  const auto second =
      another ? lateness(agent, observer.samples(), {hog.key(), another->key()}, level) : std::vector<double>{};
  return {{"kernelKills", "kernel kills", int{kills.look()}},
          {"evictions", "evictions", int{evicted}},
          {"leftMiB", "left, median", left_mib, "{median:.1f}"},
          {"", "left, least", left_mib, "{least:.1f}"},
          {"secondMs", "second, ms", second, "{median:.2f}/{p90:.2f}"}};
}

/// A pod whose memory follows what it is told. `request`: bytes.
testbed::PodSpec holder(const char* name, std::int64_t request, int priority = 0, QosClass qos = QosClass::Burstable) {
  return {.name = name,
          .qos = qos,
          .priority = priority,
          .containers = {{.args = {"follow", OwnPod::word}, .memory_request = request}}};
}

/// What is still on its way would be asked for twice.
void wait_until_it_holds_still(testbed::Testbed& testbed) {
  testbed::wait_until("the usage holds still", steer_patience, [&] {
    const auto before = testbed.node().memory_usage();
    std::this_thread::sleep_for(300ms);
    return std::abs(testbed.node().memory_usage() - before) < mebi;
  });
}

/// It has raised whom it raises. That it is near it learns by a pass, which comes every 10 s at least.
bool steers(const testbed::Agent& agent) {
  const auto status = agent.status();
  return std::ranges::any_of(status.wake_sources(), [](const auto& source) {
    return source.name() == "oom-steering" && source.state() == "armed";
  });
}

Row steer_once(Scene& scene, bool with) {
  auto& testbed = scene.testbed();
  scene.wait_until_calm();
  // "kernels" is further beyond its request, and "evictds" of a lower priority.
  const OwnPod evictds{testbed, holder("evictds", 200 * mebi), "8Mi"};
  const OwnPod kernels{testbed, holder("kernels", 50 * mebi, 1000), "8Mi"};
  const OwnPod filler{testbed, holder("filler", 0, 2'000'000, QosClass::Guaranteed), "8Mi"};
  evictds.hold(240 * mebi);
  kernels.hold(150 * mebi);
  wait_until_it_holds_still(testbed);

  auto options = agent_options(Variant::fast, scene.thresholds());
  options.sections += fmt::format("protection: {{steerOom: \"{}\"}}\n", with ? "auto" : "off");
  testbed::Agent agent{testbed, options};
  agent.wait_for_pods(scene.calm_pods() + 3);
  constexpr std::int64_t distance = 45 * mebi;  // near, and not so near that a little more would evict
  const auto filled = scene.level() - testbed.node().memory_usage() - distance + 8 * mebi;
  filler.hold(filled);
  wait_until_it_holds_still(testbed);
  if (with) testbed::wait_until("evictd steers", 30s, [&] { return steers(agent); });
  std::this_thread::sleep_for(300ms);  // it writes beside its loop

  agent.process().signal(SIGSTOP);
  filler.hold(filled + 200 * mebi);
  testbed::wait_until("the kernel has killed", steer_patience,
                      [&] { return !evictds.lives() || !kernels.lives() || !filler.lives(); });
  const bool another = evictds.lives();
  filler.tell("8Mi");
  agent.process().signal(SIGCONT);
  return {{"firstOfRanking", "the first of the ranking", int{!another}},
          {"another", "another pod", int{another}},
          {"", "share", std::vector{another ? 0.0 : 100.0}, "{mean:.0f}%"}};
}

/// On a node of 1 GiB with memory.available<100Mi: one pod is the first of evictd's ranking, another one that which the
/// kernel would take. The threshold comes near, evictd is held back (SIGSTOP), and the node's memory runs out; in turn
/// with the steering (protection.steerOom) and without.
Report measure_steer(int trials) {
  Scene scene{oom_threshold};
  const auto rows =
      in_turn(trials, {{{{"variant", "", "steered"}}, [&](int) { return steer_once(scene, true); }},
                       {{{"variant", "", "not steered"}}, [&](int) { return steer_once(scene, false); }}});
  return report_of("oom --steer",
                   "A node of 1 GiB, memory.available<100Mi, and evictd held back while the memory runs out: whom the "
                   "kernel's OOM\nkiller takes.",
                   rows);
}

Report measure_oom(const OomOptions& options) {
  if (options.steers) return measure_steer(options.trials);
  Scene scene{oom_threshold};
  std::vector<Contender> contenders;
  for (const auto hog : {Hog{false, 1}, Hog{false, 8}, Hog{true, 1}, Hog{true, 8}, Hog{false, 1, true}})
    for (const auto variant : variants_named(options.variants))
      contenders.push_back(
          {.who = {{"hugePages", hog.huge_pages},
                   {"processes", hog.processes},
                   {"", "hog", name(hog)},
                   {"variant", "", name(variant)}},
           .run = [&scene, hog, variant](int number) { return burst_once(scene, hog, variant, number); }});
  warm_memory(Scene::node_memory * 2);
  return report_of(
      "oom",
      "A node of 1 GiB, memory.available<100Mi. Left: free memory at the worst moment, MiB. Second: median "
      "and p90 of how long\nafter the node was short beyond the first one's memory the second one was "
      "chosen.",
      in_turn(options.trials, contenders));
}

}  // namespace

void add_oom(Commands& commands) {
  commands.add({"oom", "how often the kernel's OOM killer is quicker", "of each hog against each variant"}, measure_oom,
               [](auto& command, auto& options) {
                 variants(command, options.variants, {"fast", "cri", "timer", "sampler", "fence"});
                 command.add_flag(
                     "--steer", options.steers,
                     "instead, whom the kernel takes while evictd is held back, with protection.steerOom and without");
               });
}

}  // namespace bench
