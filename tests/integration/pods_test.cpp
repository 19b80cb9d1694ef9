#include <doctest/doctest.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "testbed/agent.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::pods_test {

// evictctl pods, of real pods.

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;
const auto gibi_node = Testbed::Options{.node = {.memory_limit = 1024 * mebi}};

testbed::PodSpec holding(std::string name, const std::string& size, std::optional<int> priority = {}) {
  return {.name = std::move(name),
          .qos = QosClass::BestEffort,
          .priority = priority,
          .containers = {{.args = {"hold", size}}}};
}

std::vector<std::string> evictctl(const Agent& agent, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{testbed::evictctl_program(), "--address", agent.address()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

evictd::v1::RankPodsResponse ranking(const Agent& agent, const std::string& signal = "memory.available") {
  evictd::v1::RankPodsResponse response;
  const auto json = testbed::run(evictctl(agent, {"pods", "--signal", signal, "-o", "json"}));
  REQUIRE(google::protobuf::util::JsonStringToMessage(json, &response).ok());
  return response;
}

std::vector<std::string> names(const evictd::v1::RankPodsResponse& response) {
  std::vector<std::string> result;
  for (const auto& pod : response.pods()) result.push_back(pod.pod().name());
  return result;
}

std::vector<std::string> evicted(Agent& agent) {
  std::vector<std::string> result;
  for (const auto& event : agent.events().all())
    if (event.kind() == Event::EVICTION_INTENDED) result.push_back(event.pod().name());
  return result;
}

}  // namespace

TEST_CASE("pods are listed in the order in which they are then evicted") {
  Testbed testbed{gibi_node};
  auto within = holding("within", "20Mi");
  within.qos = QosClass::Burstable;
  within.containers[0].memory_request = 128 * mebi;
  (void)testbed.cri().run_pod(within);
  (void)testbed.cri().run_pod(holding("dear", "80Mi", 10));
  (void)testbed.cri().run_pod(holding("less", "60Mi"));
  (void)testbed.cri().run_pod(holding("most", "120Mi"));
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}"}};
  agent.wait_for_pods(4);
  const std::vector<std::string> order{"most", "less", "dear", "within"};
  evictd::v1::RankPodsResponse listed;
  testbed::wait_until("all hold what they hold", 30s, [&] {
    listed = ranking(agent);
    return names(listed) == order && listed.pods(0).usage() >= 120 * mebi && listed.pods(1).usage() >= 60 * mebi &&
           listed.pods(2).usage() >= 80 * mebi;
  });
  CHECK(listed.pods(0).qos_class() == "BestEffort");
  CHECK(listed.pods(0).why().starts_with("best effort, uses 12"));
  CHECK(listed.pods(2).priority() == 10);
  CHECK(listed.pods(3).why() == "within its request");
  const auto table = testbed::run(evictctl(agent, {"pods"}));
  CHECK(table.find("1  default/most") != std::string::npos);
  CHECK(table.find('\x1b') == std::string::npos);

  // One that never goes takes so much that two of them have to.
  (void)testbed.cri().run_pod({.name = "vital",
                               .qos = QosClass::Burstable,
                               .priority = 2'000'000'000,
                               .containers = {{.args = {"grow", "16Mi", "200Mi/s", "580Mi"}}}});
  agent.events().wait_for(Event::CLEANUP_DONE, "default/less", 60s);
  CHECK(evicted(agent) == std::vector<std::string>{"most", "less"});
  agent.wait_for_pods(3);
  const auto left = ranking(agent);
  const auto vital = std::ranges::find(left.pods(), "vital", [](const auto& pod) { return pod.pod().name(); });
  REQUIRE(vital != left.pods().end());
  CHECK(vital->critical());
  CHECK(vital->why() == "critical: never evicted");
}

TEST_CASE("what pods ask for as a whole decides who goes, and their priority among those that exceed it") {
  Testbed testbed{gibi_node};
  const auto run = [&](testbed::PodSpec pod, const std::string& spec) {
    pod.annotations["evictd.io/pod-spec"] = spec;
    return testbed.cri().run_pod(pod);
  };
  // The containers' own requests would keep these two: none of them count beside what the pod asks for as a whole.
  const auto other = R"({"resources": {"requests": {"cpu": "10m"}},)"
                     R"( "containers": [{"name": "main", "resources": {"requests": {"memory": "512Mi"}}}]})";
  static_cast<void>(run(holding("dear", "100Mi", 999'999'999), other));
  static_cast<void>(run(holding("most", "150Mi"), other));
  auto spec = holding("within", "120Mi");
  spec.qos = QosClass::Guaranteed;
  const auto within = run(spec, R"({"resources": {"requests": {"cpu": "100m", "memory": "200Mi"},)"
                                R"( "limits": {"cpu": "100m", "memory": "200Mi"}}, "containers": [{"name": "main"}]})");
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}"}};
  agent.wait_for_pods(3);
  testbed::wait_until("they are in their order", 30s, [&] {
    const auto listed = ranking(agent);
    return names(listed) == std::vector<std::string>{"most", "dear", "within"} &&
           std::ranges::all_of(listed.pods(), [](const auto& pod) { return pod.usage() >= 100 * mebi; });
  });

  // One that never goes takes so much that two of them have to.
  static_cast<void>(testbed.cri().run_pod({.name = "vital",
                                           .qos = QosClass::Burstable,
                                           .priority = 2'000'000'000,
                                           .containers = {{.args = {"grow", "16Mi", "200Mi/s", "530Mi"}}}}));
  agent.events().wait_for(Event::CLEANUP_DONE, "default/dear", 60s);
  CHECK(evicted(agent) == std::vector<std::string>{"most", "dear"});
  CHECK(testbed.cri().is_running(within));
}

TEST_CASE("each signal has its own order") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi, .pids_limit = 1000}}};
  (void)testbed.cri().run_pod(holding("large", "100Mi"));
  (void)testbed.cri().run_pod({.name = "forks", .qos = QosClass::BestEffort, .containers = {{.args = {"fork", "40"}}}});
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}"}};
  agent.wait_for_pods(2);
  testbed::wait_until("they are in their order", 30s, [&] {
    return names(ranking(agent)) == std::vector<std::string>{"large", "forks"} &&
           names(ranking(agent, "pid.available")) == std::vector<std::string>{"forks", "large"};
  });
  CHECK(ranking(agent, "pid.available").pods(0).why().ends_with(" processes"));
  CHECK(ranking(agent, "nodefs.available").pods_size() == 2);
  CHECK(agent.status().evictions() == 0);
}

TEST_CASE("a watch in a pipe goes on until it is told to stop") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .start_containerd = false}};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}", .wait_until_ready = false}};
  for (const auto& [format, separator] : {std::pair{"table", "\n\nevictd "}, {"json", "}\n{"}, {"yaml", "\n---\n"}}) {
    CAPTURE(format);
    auto watch = testbed.spawn(evictctl(agent, {"status", "--watch=100ms", "-o", format}));
    testbed::wait_until("it has looked three times", 30s, [&] {
      const auto output = watch.output();
      const auto second = output.find(separator);
      return second != std::string::npos && output.find(separator, second + 1) != std::string::npos;
    });
    CHECK(watch.running());
    CHECK(watch.output().find('\x1b') == std::string::npos);
    watch.signal(SIGTERM);
    CHECK(watch.wait(30s) == 0);
    CHECK(watch.errors().empty());
  }
  {
    // script(1) gives it a terminal, which obeys no sequences.
    const auto command = fmt::format("{}", fmt::join(evictctl(agent, {"status", "-w100ms"}), " "));
    auto dumb = testbed.spawn({"env", "TERM=dumb", "script", "-qec", command, "/dev/null"});
    testbed::wait_until("it has looked twice", 30s, [&] { return dumb.output().contains("\r\n\r\nevictd "); });
    CHECK(dumb.output().find('\x1b') == std::string::npos);
    dumb.signal(SIGTERM);
    CHECK(dumb.wait(30s));
  }
  auto watch = testbed.spawn(evictctl(agent, {"status", "-w100ms"}));
  testbed::wait_until("it has looked", 30s, [&] { return !watch.output().empty(); });
  agent.process().kill();
  CHECK(watch.wait(30s) == 1);
  CHECK(watch.errors().starts_with("evictctl: "));
}

TEST_CASE("before the runtime told its pods there is no order") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}, .start_containerd = false}};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}", .wait_until_ready = false}};
  auto pods = testbed.spawn(evictctl(agent, {"pods"}));
  CHECK(pods.wait(30s) == 1);
  CHECK(pods.errors() == "evictctl: the runtime has not told its pods yet: is it running?\n");
}

}  // namespace integration::pods_test
