#include "benchmarks/steer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <thread>

#include "benchmarks/scene.hpp"
#include "benchmarks/variant.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace json = boost::json;
using namespace std::chrono_literals;
using evictd::core::QosClass;

namespace {

constexpr std::int64_t steer_threshold = 100 * mebi;
constexpr auto steer_patience = 2min;

std::string_view name(const SteerRuns& result) { return result.steers ? "steered" : "not steered"; }

/// A pod whose memory follows what it is told; removed with this object.
class Holder {
 public:
  struct Kind {
    const char* name;
    QosClass qos = QosClass::Burstable;
    std::int64_t request = 0;  ///< bytes
    int priority = 0;
  };

  Holder(testbed::Testbed& testbed, const Kind& kind) : testbed_{testbed}, directory_{testbed.directory() / kind.name} {
    std::filesystem::create_directory(directory_);
    hold(8 * mebi);
    testbed::PodSpec spec{.name = kind.name, .qos = kind.qos, .priority = kind.priority, .containers = {{}}};
    spec.containers[0].args = {"follow", "/control/size"};
    spec.containers[0].memory_request = kind.request;
    spec.containers[0].mounts.push_back({.host_path = directory_, .container_path = "/control"});
    pod_ = testbed.cri().run_pod(spec);
  }
  ~Holder() {
    testbed::report_failure([&] {
      testbed_.cri().remove(pod_);
      std::filesystem::remove_all(directory_);
    });
  }
  Holder(const Holder&) = delete;

  void hold(std::int64_t bytes) const { testbed::replace_file(directory_ / "size", std::to_string(bytes)); }
  [[nodiscard]] bool lives() const { return !testbed_.node().processes(pod_.container_cgroup()).empty(); }

 private:
  testbed::Testbed& testbed_;
  std::filesystem::path directory_;
  testbed::RunningPod pod_;
};

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
  const Holder evictds{testbed, {.name = "evictds", .request = 200 * mebi}};
  const Holder kernels{testbed, {.name = "kernels", .request = 50 * mebi, .priority = 1000}};
  const Holder filler{testbed, {.name = "filler", .qos = QosClass::Guaranteed, .priority = 2'000'000}};
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
  filler.hold(8 * mebi);
  agent.process().signal(SIGCONT);
}

}  // namespace

std::vector<SteerRuns> measure_steer(int runs) {
  std::vector<SteerRuns> results{{.steers = true}, {.steers = false}};
  Scene scene{steer_threshold};
  for (int round = 1; round <= runs; ++round)
    for (auto& result : results) {
      run_once(scene, result);
      progress(fmt::format("run {}/{}, {}: the first of the ranking {} times, another one {} times", round, runs,
                           name(result), result.first, result.another));
    }
  return results;
}

std::string steer_table(const std::vector<SteerRuns>& results) {
  auto table = fmt::format(
      "A node of 1 GiB, memory.available<100Mi, and evictd held back while the memory runs out: whom the kernel's OOM\n"
      "killer takes.\n\n{:<16}{:>5}{:>26}{:>13}{:>8}\n",
      "", "runs", "the first of the ranking", "another pod", "share");
  for (const auto& result : results)
    fmt::format_to(std::back_inserter(table), "{:<16}{:>5}{:>26}{:>13}{:>7.0f}%\n", name(result), result.runs,
                   result.first, result.another, result.runs == 0 ? 0 : 100.0 * result.first / result.runs);
  return table;
}

std::string steer_json(const std::vector<SteerRuns>& results) {
  json::array rows;
  for (const auto& result : results)
    rows.push_back(json::object{{"variant", name(result)},
                                {"runs", result.runs},
                                {"firstOfRanking", result.first},
                                {"another", result.another}});
  return json::serialize(json::object{{"bench", "oom --steer"}, {"results", std::move(rows)}});
}

}  // namespace bench
