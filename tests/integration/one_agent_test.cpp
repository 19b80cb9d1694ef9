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

std::string node_of(Testbed& testbed, const std::string& lock_file) {
  return fmt::format("node: {{cgroupRoot: {}, lockFile: \"{}\"}}\n", testbed.node().cgroup(), lock_file);
}

std::string api_in(const Testbed& testbed, const char* directory) {
  return fmt::format(
      "api: {{socket: {0}/evictd.sock, historyDirectory: \"\"}}\n"
      "thresholds: {{stateFile: \"\", dropIns: \"\"}}\nadmission: {{stateFile: \"\"}}\n",
      (testbed.directory() / directory).native());
}

}  // namespace

TEST_CASE("a second evictd on a node is told in one line who guards it, and the first one is not disturbed") {
  Testbed testbed{without_runtime};
  Agent agent{testbed, guarded};
  const auto lock = (testbed.directory() / "lock").native();
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"--dry-run"}}) {
    auto second = start_beside(testbed, node_of(testbed, lock), arguments);
    CHECK(second.wait(30s) == 1);
    const auto line = second.errors();
    CHECK(line.starts_with("evictd: node.lockFile: another evictd guards this node (evictd "));
    CHECK(line.find(fmt::format(", pid {}, since 20", agent.process().pid())) != std::string::npos);
    CHECK(
        line.ends_with(fmt::format("Z) and holds {}: stop it first, or give this one a file of its own if it guards "
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
  CHECK(second.process().errors().find("lockFile") == std::string::npos);
}

TEST_CASE("evictds with lock files of their own run side by side, and without a lock the socket decides") {
  Testbed testbed{without_runtime};
  Agent agent{testbed, guarded};
  std::filesystem::create_directory(testbed.directory() / "beside");
  const auto other = (testbed.directory() / "beside" / "lock").native();
  auto beside = start_beside(testbed, node_of(testbed, other) + api_in(testbed, "beside"), {"--dry-run"});
  testbed::wait_until("it guards, too", 60s,
                      [&] { return beside.errors().find(" guards " + testbed.node().cgroup()) != std::string::npos; });
  beside.signal(SIGTERM);
  CHECK(beside.wait(30s) == 0);

  auto unlocked = start_beside(testbed, node_of(testbed, "") + api_in(testbed, ""));
  CHECK(unlocked.wait(30s) == 1);
  CHECK(unlocked.errors().find(": somebody answers on it already (another evictd?)") != std::string::npos);
  CHECK(agent.status().passes() >= 1);
}

TEST_CASE("where the lock file cannot be made that is said once, and the node is guarded") {
  Testbed testbed{without_runtime};
  std::filesystem::create_directory(testbed.directory() / "lock");
  Agent agent{testbed, guarded};
  testbed::wait_until("the first pass", 30s, [&] { return agent.status().passes() > 0; });
  const auto said = agent.process().errors();
  const auto line = fmt::format("node.lockFile: {}: Is a directory; a second evictd on this node would not be noticed",
                                (testbed.directory() / "lock").native());
  CHECK(said.find(line) != std::string::npos);
  CHECK(said.find(line) == said.rfind(line));
}
