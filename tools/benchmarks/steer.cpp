#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "benchmarks/benches.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/variant.hpp"
#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;
using evictd::core::QosClass;

namespace {

constexpr std::int64_t steer_threshold = 100 * mebi;
constexpr auto steer_patience = 2min;

/// The runs in which the kernel's OOM killer came first, with protection.steerOom or without.
struct SteerRuns {
  bool steers = false;
  int runs = 0;
  int first = 0;    ///< runs in which it took the first of evictd's ranking
  int another = 0;  ///< runs in which it took another pod
};

std::string_view name(const SteerRuns& result) { return result.steers ? "steered" : "not steered"; }

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

void run_once(Scene& scene, SteerRuns& result) {
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
  options.sections += fmt::format("protection: {{steerOom: \"{}\"}}\n", result.steers ? "auto" : "off");
  testbed::Agent agent{testbed, options};
  agent.wait_for_pods(scene.calm_pods() + 3);
  constexpr std::int64_t distance = 45 * mebi;  // near, and not so near that a little more would evict
  const auto filled = scene.level() - testbed.node().memory_usage() - distance + 8 * mebi;
  filler.hold(filled);
  wait_until_it_holds_still(testbed);
  if (result.steers) testbed::wait_until("evictd steers", 30s, [&] { return steers(agent); });
  std::this_thread::sleep_for(300ms);  // it writes beside its loop

  agent.process().signal(SIGSTOP);
  filler.hold(filled + 200 * mebi);
  testbed::wait_until("the kernel has killed", steer_patience,
                      [&] { return !evictds.lives() || !kernels.lives() || !filler.lives(); });
  ++result.runs;
  ++(evictds.lives() ? result.another : result.first);
  filler.tell("8Mi");
  agent.process().signal(SIGCONT);
}

Row figures(const SteerRuns& of) {
  return {{"variant", "", name(of)},
          {"runs", "runs", of.runs},
          {"firstOfRanking", "the first of the ranking", of.first},
          {"another", "another pod", of.another},
          {"", "share", 100.0 * of.first / of.runs, "{:.0f}%"}};
}

}  // namespace

Report measure_steer(const OomOptions& options) {
  std::vector<SteerRuns> results{{.steers = true}, {.steers = false}};
  Scene scene{steer_threshold};
  for (int round = 1; round <= options.trials; ++round)
    for (auto& result : results) {
      run_once(scene, result);
      progress(fmt::format("run {}/{}, {}: the first of the ranking {} times, another one {} times", round,
                           options.trials, name(result), result.first, result.another));
    }
  return report_of("oom --steer",
                   "A node of 1 GiB, memory.available<100Mi, and evictd held back while the memory runs out: whom the "
                   "kernel's OOM\nkiller takes.",
                   rows_of(results));
}

}  // namespace bench
