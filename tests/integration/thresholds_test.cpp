#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::thresholds_test {

// Thresholds that change while evictd runs: by evictctl, by files, by a start.

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;
const auto gibi_node = Testbed::Options{.node = {.memory_limit = 1024 * mebi}};

/// A pod that holds so much memory, once it does.
testbed::RunningPod run_holder(Testbed& testbed, const std::string& name, std::int64_t mebibytes) {
  auto pod = testbed.cri().run_pod(
      {.name = name, .qos = QosClass::BestEffort, .containers = {{.args = {"hold", fmt::format("{}Mi", mebibytes)}}}});
  testbed::wait_until(name + " holds its memory", 60s,
                      [&] { return testbed.node().memory_usage(pod.cgroup) >= mebibytes * mebi; });
  return pod;
}

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome evictctl(Testbed& testbed, const Agent& agent, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{testbed::evictctl_program(), "--address", agent.address()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto process = testbed.spawn(command, {.environment = {"COLUMNS=200"}});
  const auto code = process.wait(60s);
  REQUIRE(code.has_value());
  return {*code, process.output(), process.errors()};
}

Outcome thresholds(Testbed& testbed, const Agent& agent, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "thresholds");
  return evictctl(testbed, agent, arguments);
}

/// With what the agent was started with besides: that has not changed.
void write_kubelet_file(Testbed& testbed, const std::string& fields) {
  testbed::replace_file(testbed.directory() / "kubelet.yaml",
                        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + fields +
                            "podLogsDir: " + (testbed.directory() / "pod-logs").native() + "\n");
}

Event wait_for_config_change(Agent& agent, const std::string& words) {
  return agent.events().wait_for("a change of the configuration", 60s, [&](const Event& event) {
    return event.kind() == Event::CONFIG_CHANGED && event.message().find(words) != std::string::npos;
  });
}

std::string value_of(const Agent& agent, const std::string& signal) {
  const auto status = agent.status();
  for (const auto& entry : status.signals())
    if (entry.signal() == signal && !entry.thresholds().empty()) return entry.thresholds(0).threshold().value();
  return "none";
}

/// The usage at which the sources wait for memory, each level once.
std::vector<std::int64_t> arm_levels(const Agent& agent) {
  std::vector<std::int64_t> levels;
  const auto status = agent.status();
  for (const auto& source : status.wake_sources())
    if (source.has_arm_level_bytes()) levels.push_back(source.arm_level_bytes());
  return levels;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a threshold set by evictctl is armed at once, told, and kept until the machine ends unless it was saved") {
  Testbed testbed{gibi_node};
  const Agent::Options options{.thresholds = "evictionHard: {memory.available: 100Mi}\n"};
  {
    Agent agent{testbed, options};
    const auto levels = arm_levels(agent);
    const auto set = thresholds(testbed, agent, {"set", "memory.available=200Mi", "pid.available=50"});
    CHECK(set.err == "");
    CHECK(set.code == 0);
    CHECK(contains(set.out, "changed: memory.available: 100Mi -> 200Mi\n"));
    CHECK(contains(set.out, "changed: pid.available: none -> 50\n"));
    // Armed before the call was answered: no pass lies between the two.
    CHECK(value_of(agent, "memory.available") == "200Mi");
    if (!levels.empty()) CHECK(arm_levels(agent) != levels);
    wait_for_config_change(agent, "memory.available: 100Mi -> 200Mi");
    CHECK(contains(thresholds(testbed, agent, {"get"}).out, "live"));
    const auto saved = thresholds(testbed, agent, {"set", "nodefs.available=1Mi", "--save"});
    CHECK(saved.code == 0);
    CHECK(contains(saved.out, "saved to " + (testbed.directory() / "thresholds.d/90-evictctl.yaml").native()));
    const auto soft = thresholds(testbed, agent, {"set", "memory.available=300Mi", "--soft", "--grace", "1m30s"});
    CHECK(contains(soft.out, "changed: memory.available (soft): none -> 300Mi for 1m30s\n"));
    agent.process().signal(SIGTERM);
    REQUIRE(agent.process().wait(60s) == 0);
  }
  {
    Agent again{testbed, options};
    CHECK(contains(thresholds(testbed, again, {"get"}).out, "1m30s"));
    again.process().kill();
  }
  {
    Agent again{testbed, options};
    CHECK(contains(thresholds(testbed, again, {"get"}).out, "1m30s"));
    again.process().kill();
  }
  std::filesystem::remove(testbed.directory() / "state");  // as /run is, when the machine ends
  Agent again{testbed, options};
  const auto get = thresholds(testbed, again, {"get"});
  // What was live when something was saved is saved with it; what came later is not.
  CHECK(contains(get.out, "90-evictctl.yaml"));
  CHECK(contains(get.out, "200Mi"));
  CHECK_FALSE(contains(get.out, "1m30s"));
}

TEST_CASE("a threshold that would evict at once asks for --yes, and then a real pod goes") {
  Testbed testbed{gibi_node};
  const auto pod = run_holder(testbed, "holder", 300);
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}\n"}};
  agent.wait_for_pods(1);
  const auto refused = thresholds(testbed, agent, {"set", "memory.available=900Mi"});
  CHECK(refused.code == 1);
  CHECK(contains(refused.err, "pods would be evicted at once: memory.available<900Mi: "));
  CHECK(contains(refused.err, "--yes"));
  const auto asked = thresholds(testbed, agent, {"set", "memory.available=900Mi", "--dry-run"});
  CHECK(asked.code == 0);
  CHECK(contains(asked.out, "would evict at once: memory.available<900Mi"));
  CHECK(value_of(agent, "memory.available") == "100Mi");
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/holder"));

  const auto done = thresholds(testbed, agent, {"set", "memory.available=900Mi", "--yes"});
  CHECK(done.code == 0);
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/holder", 60s);
  CHECK(intended.wake().source() == "thresholds");
  agent.events().wait_for(Event::CLEANUP_DONE, "default/holder", 60s);

  // What advice rests upon has been seen once now.
  const auto advice = thresholds(testbed, agent, {"suggest"});
  CHECK(advice.code == 0);
  CHECK(advice.out.starts_with("memory.available="));
  CHECK(contains(advice.out, "1 evictions for memory"));
  CHECK(contains(advice.out, "/s x "));
  CHECK_FALSE(contains(advice.out, "assumed"));
}

TEST_CASE("after a change only so many pods go within the minute") {
  Testbed testbed{gibi_node};
  std::vector<testbed::RunningPod> pods;
  for (const auto* name : {"one", "two", "three"}) pods.push_back(run_holder(testbed, name, 100));
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 100Mi}\n", .threshold_changes = "maxEvictionsAfter: 1"}};
  agent.wait_for_pods(3);
  CHECK(thresholds(testbed, agent, {"set", "memory.available=1000Mi", "--yes"}).code == 0);
  agent.events().wait_for("that the cap is reached", 60s, [](const Event& event) {
    return event.kind() == Event::EVICTION_FAILED && contains(event.message(), "thresholds.maxEvictionsAfter");
  });
  const auto events = agent.events().all();
  CHECK(std::ranges::count(events, Event::EVICTION_INTENDED, &Event::kind) == 1);
}

TEST_CASE("changed files take effect without a restart; a bad one is refused with line and column") {
  Testbed testbed{gibi_node};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}\n"}};
  write_kubelet_file(testbed, "evictionHard: {memory.available: 150Mi}\n");
  wait_for_config_change(agent, "thresholds changed by a file: memory.available: 100Mi -> 150Mi");
  CHECK(value_of(agent, "memory.available") == "150Mi");

  write_kubelet_file(testbed, "evictionHard:\n  memory.available: 15x\n");
  const auto refused = wait_for_config_change(agent, "is refused");
  CHECK(contains(refused.message(), "kubelet.yaml:4: evictionHard: memory.available: \"15x\""));
  CHECK(contains(refused.message(), "(column 3)"));
  CHECK(value_of(agent, "memory.available") == "150Mi");
  CHECK(contains(evictctl(testbed, agent, {"-o", "json", "status"}).out, "is refused"));

  write_kubelet_file(testbed, "evictionHard: {memory.available: 160Mi}\n");
  wait_for_config_change(agent, "150Mi -> 160Mi");

  // A drop-in comes on top, in a directory that was not there before.
  std::filesystem::create_directory(testbed.directory() / "thresholds.d");
  testbed::replace_file(testbed.directory() / "thresholds.d/10-more.yaml",
                        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
                        "evictionHard: {memory.available: 170Mi}\n");
  wait_for_config_change(agent, "160Mi -> 170Mi");
  CHECK(contains(thresholds(testbed, agent, {"get"}).out, "10-more.yaml"));
  std::filesystem::remove(testbed.directory() / "thresholds.d/10-more.yaml");
  wait_for_config_change(agent, "170Mi -> 160Mi");
}

TEST_CASE("a file that would evict at once is held back until somebody says so") {
  Testbed testbed{gibi_node};
  const auto pod = run_holder(testbed, "holder", 300);
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}\n"}};
  agent.wait_for_pods(1);
  write_kubelet_file(testbed, "evictionHard: {memory.available: 900Mi}\n");
  wait_for_config_change(agent, "held back");
  CHECK(value_of(agent, "memory.available") == "100Mi");
  CHECK(contains(thresholds(testbed, agent, {"get"}).out, "held back: memory.available: 100Mi -> 900Mi"));
  CHECK(thresholds(testbed, agent, {"apply"}).code == 1);
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/holder"));
  CHECK(thresholds(testbed, agent, {"apply", "--yes"}).code == 0);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/holder", 60s);
}

TEST_CASE("a start with thresholds that would evict at once goes on with those of the last run") {
  Testbed testbed{gibi_node};
  const auto pod = run_holder(testbed, "holder", 300);
  {
    Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}\n", .keep_history = true}};
    agent.process().signal(SIGTERM);
    REQUIRE(agent.process().wait(60s) == 0);
  }
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 900Mi}\n", .keep_history = true}};
  agent.wait_for_pods(1);
  CHECK(value_of(agent, "memory.available") == "100Mi");
  const auto get = thresholds(testbed, agent, {"get"});
  CHECK(contains(get.out, "held back: memory.available: 100Mi -> 900Mi"));
  CHECK(contains(get.out, "thresholds of the last run"));
  agent.process().wait_until_says("held back");
  CHECK(agent.status().evictions() == 0);
  CHECK(thresholds(testbed, agent, {"apply", "--yes"}).code == 0);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/holder", 60s);
}

TEST_CASE("so does a start whose other thresholds would, for process ids say") {
  Testbed testbed{gibi_node};
  const auto pod = run_holder(testbed, "holder", 1);
  {
    Agent agent{testbed, {.thresholds = "evictionHard: {pid.available: 10}\n", .keep_history = true}};
    agent.process().signal(SIGTERM);
    REQUIRE(agent.process().wait(60s) == 0);
  }
  Agent agent{testbed, {.thresholds = "evictionHard: {pid.available: 1000000}\n", .keep_history = true}};
  agent.wait_for_pods(1);
  CHECK(value_of(agent, "pid.available") == "10");
  CHECK(contains(thresholds(testbed, agent, {"get"}).out, "held back: pid.available: 10 -> "));
  CHECK(agent.status().evictions() == 0);
}

TEST_CASE("a dry run is no run whose thresholds a start goes on with") {
  Testbed testbed{gibi_node};
  const auto pod = run_holder(testbed, "holder", 300);
  const auto run_for_a_while = [&](const std::string& memory_available, std::vector<std::string> arguments) {
    Agent agent{testbed,
                {.thresholds = fmt::format("evictionHard: {{memory.available: {}}}\n", memory_available),
                 .keep_history = true,
                 .arguments = std::move(arguments)}};
    agent.process().signal(SIGTERM);
    REQUIRE(agent.process().wait(60s) == 0);
  };
  run_for_a_while("100Mi", {});
  run_for_a_while("200Mi", {"--dry-run"});
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 900Mi}\n", .keep_history = true}};
  agent.wait_for_pods(1);
  CHECK(value_of(agent, "memory.available") == "100Mi");
  CHECK(contains(thresholds(testbed, agent, {"get"}).out, "held back: memory.available: 100Mi -> 900Mi"));
  CHECK(agent.status().evictions() == 0);
}

TEST_CASE("what is wrong with a change is said in a line, and nothing changes") {
  Testbed testbed{gibi_node};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}\n"}};
  const auto revision = agent.status().thresholds_revision();
  const auto check = [&](std::vector<std::string> arguments, int code, const std::string& words) {
    arguments.insert(arguments.begin(), "set");
    const auto outcome = thresholds(testbed, agent, arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.code == code);
    CHECK(contains(outcome.err, words));
    CHECK(std::ranges::count(outcome.err, '\n') == 1);
    CHECK(outcome.out == "");
  };
  check({"memory.availble=1Gi"}, 2, "did you mean \"memory.available\"?");
  check({"memory.available=5x"}, 2, "\"5x\" is not a quantity");
  check({"memory.available"}, 2, "is not SIGNAL=VALUE");
  check({"memory.available=1Mi", "--grace", "1m"}, 2, "say --soft");
  check({"memory.available=1Mi", "--soft"}, 2, "needs a grace period");
  check({"memory.available=1Mi", "--revision", "0123456789abcdef"}, 1, "somebody changed the thresholds");
  check({"pid.available="}, 2, "no hard threshold that could be removed");
  CHECK(agent.status().thresholds_revision() == revision);
}

}  // namespace integration::thresholds_test
