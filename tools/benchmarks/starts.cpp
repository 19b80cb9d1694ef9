#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/commands.hpp"
#include "testbed/agent.hpp"
#include "testbed/testbed.hpp"

namespace bench {

using namespace std::chrono_literals;

namespace {

struct StartsOptions {
  int trials = 100;  ///< pods that start, one after the other
};

/// Milliseconds until evictd ranks the pod as one of the runtime's. What asking evictd takes is in it.
Report measure_starts(const StartsOptions& options) {
  testbed::Testbed testbed{{.node = {.memory_limit = std::int64_t{1} << 30}}};
  const testbed::Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 50Mi}"}};
  // Whatever the first lists take is over, and a stream of events is believed.
  std::this_thread::sleep_for(5s);

  int before = 0;  // pods that it knew before the answer was there
  std::vector<double> known;
  for (int i = 0; i < options.trials; ++i) {
    const auto pod = testbed.cri().run_pod({.name = fmt::format("pod-{}", i), .containers = {}});
    const auto answered = std::chrono::steady_clock::now();
    if (agent.is_listed(pod.uid)) ++before;
    while (!agent.is_listed(pod.uid)) std::this_thread::sleep_for(200us);
    known.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - answered).count());
    testbed.cri().remove(pod);
    std::this_thread::sleep_for(200ms);
  }
  const auto runtime = agent.status().runtime();
  const auto [median, p90, max] = summarize(std::move(known));
  Report report{.json = json_of({{"bench", "starts"},
                                 {"runtime", fmt::format("{} {}", runtime.name(), runtime.version())},
                                 {"pods", options.trials},
                                 {"medianMs", median},
                                 {"p90Ms", p90},
                                 {"maxMs", max},
                                 {"before", before}})};
  report.text = filled(
      "{runtime}: {pods} pods, one after the other. Milliseconds from the answer to RunPodSandbox until evictd knows "
      "the pod.\n\nmedian {medianMs:.1f}, p90 {p90Ms:.1f}, max {maxMs:.1f}; {before} were known before the answer",
      report.json);
  return report;
}

}  // namespace

void add_starts(Commands& commands) {
  commands.add({"starts", "how soon evictd knows a pod that the runtime has started", "pods that start"},
               measure_starts);
}

}  // namespace bench
