#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

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
