// Two evictds on one node: the second one gives way.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::one_agent_test {

using namespace std::chrono_literals;
using testbed::Agent;
using testbed::Testbed;

namespace {

const Testbed::Options without_runtime{.node = {.memory_limit = 1 << 30}, .start_containerd = false};
const Agent::Options guarded{.thresholds = "evictionHard: {memory.available: 100Mi}", .wait_until_ready = false};

/// Another one, with the first one's files but for these sections of its configuration; YAML lines.
testbed::Process start_beside(const Testbed& testbed, const std::string& sections,
                              const std::vector<std::string>& arguments = {}) {
  const auto file = testbed.directory() / "second.yaml";
  testbed::replace_file(file, "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n" + sections);
  std::vector<std::string> command{testbed::evictd_program(),           "run", "--config", file, "--kubelet-config",
                                   testbed.directory() / "kubelet.yaml"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return testbed.spawn(command);
}

/// Of the same node, with its files of this boot in a directory.
std::string in(const std::filesystem::path& directory, Testbed& testbed) {
  return fmt::format(
      "stateDirectory: \"\"\nruntimeDirectory: {}\nnode: {{cgroupRoot: {}}}\nthresholds: {{dropIns: \"\"}}\n",
      directory.native(), testbed.node().cgroup());
}

}  // namespace

TEST_CASE("a second evictd on a node is told in one line who guards it, and the first one is not disturbed") {
  Testbed testbed{without_runtime};
  Agent agent{testbed, guarded};
  const auto lock = (testbed.directory() / "lock").native();
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"--dry-run"}}) {
    auto second = start_beside(testbed, in(testbed.directory(), testbed), arguments);
    CHECK(second.wait(30s) == 1);
    const auto line = second.errors();
    CHECK(line.starts_with("evictd: runtimeDirectory: another evictd guards this node (evictd "));
    CHECK(line.find(fmt::format(", pid {}, since 20", agent.process().pid())) != std::string::npos);
    CHECK(line.ends_with(
        fmt::format("Z) and holds {}: stop it first, or give this one a directory of its own if it guards "
                    "another node\n",
                    lock)));
    CHECK(line.find('\n') == line.size() - 1);
  }
  CHECK(agent.process().running());
  testbed::wait_until("the first one goes on", 60s, [&] { return agent.status().passes() >= 1; });
}

TEST_CASE("the lock of an evictd that was killed is taken over without a word") {
  Testbed testbed{without_runtime};
  {
    Agent first{testbed, guarded};
    first.process().kill();
  }
  REQUIRE(std::filesystem::exists(testbed.directory() / "lock"));
  Agent second{testbed, guarded};
  CHECK(second.process().running());
  CHECK(second.process().errors().find("runtimeDirectory") == std::string::npos);
}

TEST_CASE("evictds with directories of their own run side by side") {
  Testbed testbed{without_runtime};
  Agent agent{testbed, guarded};
  auto beside = start_beside(testbed, in(testbed.directory() / "beside", testbed), {"--dry-run"});
  beside.wait_until_says(" guards " + testbed.node().cgroup());
  beside.signal(SIGTERM);
  CHECK(beside.wait(30s) == 0);
  testbed::wait_until("the first one goes on", 60s, [&] { return agent.status().passes() >= 1; });
}

TEST_CASE("where the lock cannot be made that is said once, the node is guarded, and the socket decides") {
  Testbed testbed{without_runtime};
  std::filesystem::create_directory(testbed.directory() / "lock");
  Agent agent{testbed, guarded};
  testbed::wait_until("the first pass", 30s, [&] { return agent.status().passes() > 0; });
  const auto line =
      fmt::format("runtimeDirectory: {}: Is a directory; a second evictd on this node would not be noticed",
                  (testbed.directory() / "lock").native());
  agent.process().wait_until_says(line);
  const auto said = agent.process().errors();
  CHECK(said.find(line) == said.rfind(line));

  auto second = start_beside(testbed, in(testbed.directory(), testbed));
  CHECK(second.wait(30s) == 1);
  CHECK(second.errors().find(": somebody answers on it already (another evictd?)") != std::string::npos);
  CHECK(agent.status().passes() >= 1);
}

}  // namespace integration::one_agent_test
