#include "benchmarks/starts.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "testbed/agent.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace json = boost::json;
using namespace std::chrono_literals;

Starts measure_starts(const StartsOptions& options) {
  testbed::Testbed testbed{{.node = {.memory_limit = std::int64_t{1} << 30}}};
  const testbed::Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 50Mi}"}};
  // Whatever the first lists take is over, and a stream of events is believed.
  std::this_thread::sleep_for(5s);

  Starts starts;
  std::vector<double> known;
  for (int i = 0; i < options.pods; ++i) {
    const auto pod = testbed.cri().run_pod({.name = fmt::format("pod-{}", i), .containers = {}});
    const auto answered = std::chrono::steady_clock::now();
    if (agent.is_listed(pod.uid)) ++starts.before;
    while (!agent.is_listed(pod.uid)) std::this_thread::sleep_for(200us);
    known.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - answered).count());
    testbed.cri().remove(pod);
    std::this_thread::sleep_for(200ms);
  }
  const auto runtime = agent.status().runtime();
  starts.runtime = fmt::format("{} {}", runtime.name(), runtime.version());
  starts.known = summarize(std::move(known));
  return starts;
}

std::string starts_table(const Starts& starts, const StartsOptions& options) {
  return fmt::format(
      "{}: {} pods, one after the other. Milliseconds from the answer to RunPodSandbox until evictd knows "
      "the pod.\n\nmedian {:.1f}, p90 {:.1f}, max {:.1f}; {} were known before the answer\n",
      starts.runtime, options.pods, starts.known.median, starts.known.p90, starts.known.max, starts.before);
}

std::string starts_json(const Starts& starts, const StartsOptions& options) {
  return json::serialize(json::object{{"bench", "starts"},
                                      {"runtime", starts.runtime},
                                      {"pods", options.pods},
                                      {"medianMs", starts.known.median},
                                      {"p90Ms", starts.known.p90},
                                      {"maxMs", starts.known.max},
                                      {"before", starts.before}});
}

}  // namespace bench
