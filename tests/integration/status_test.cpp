#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::status_test {

using namespace std::chrono_literals;
using testbed::Agent;
using testbed::Testbed;

namespace {

/// The first column of the wake sources' table.
std::vector<std::string> sources_in(const std::string& table) {
  std::vector<std::string> names;
  std::istringstream lines(table.substr(std::min(table.find("WAKE SOURCE"), table.size())));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && !line.empty()) names.push_back(line.substr(0, line.find("  ")));
  return names;
}

}  // namespace

TEST_CASE("evictctl status lists the wake sources that this kind of host has") {
  Testbed testbed{{.node = {.memory_limit = 1 << 30}, .start_containerd = false}};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}", .wait_until_ready = false}};
  testbed::wait_until("the first pass", 30s, [&] { return agent.status().passes() > 0; });
  const auto table = testbed::run({testbed::evictctl_program(), "--address", agent.address(), "status"});
  const auto names = sources_in(table);
  const auto lists = [&](std::string_view prefix) {
    return std::ranges::any_of(names, [&](const auto& name) { return name.starts_with(prefix); });
  };
  CAPTURE(table);
  CHECK(lists("timer"));
  CHECK(lists("deadline"));
  CHECK(lists("cgroups"));
  CHECK(lists("files"));
  CHECK(lists("sampler memory.available"));
  const bool v2 = testbed::cgroup_host().v2;
  CHECK(lists("memcg memory.available") == !v2);
  CHECK(lists("oom ") == !v2);
  CHECK(lists("memory.events ") == v2);
  CHECK(lists(v2 ? "psi /" : "psi the machine"));
}

TEST_CASE("a status is fresh without a pass, and knows how fast memory goes") {
  Testbed testbed{{.node = {.memory_limit = 1 << 30}}};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 50Mi}",
               .notifier = "disable: [memcg, oom, sampler, psi, files], fallbackInterval: 5m"}};
  const auto memory = [](const evictd::v1::NodeStatus& status) {
    return *std::ranges::find(status.signals(), "memory.available", &evictd::v1::SignalStatus::signal);
  };
  (void)testbed.cri().run_pod({.name = "grows",
                               .qos = evictd::core::QosClass::BestEffort,
                               .containers = {{.args = {"grow", "16Mi", "20Mi/s", "700Mi"}}}});
  agent.wait_for_pods(1);
  testbed::wait_until("two statuses differ, and nothing was decided between", 30s, [&] {
    const auto first = agent.status();
    std::this_thread::sleep_for(200ms);
    const auto second = agent.status();
    return first.passes() == second.passes() && memory(second).available() < memory(first).available();
  });
  constexpr double mebi = 1 << 20;
  testbed::wait_until("the rate is that of the pod", 30s, [&] {
    const auto signal = memory(agent.status());
    return signal.has_fill_rate() && signal.fill_rate() > 15 * mebi && signal.fill_rate() < 25 * mebi;
  });
}

}  // namespace integration::status_test
