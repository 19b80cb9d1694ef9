// A shutdown of the node: a real systemd-logind on a real D-Bus, with a stand-in for systemd that turns nothing off,
// and real pods in a real containerd.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "core/duration.hpp"
#include "descriptor_store.hpp"
#include "logind.hpp"
#include "support/skip.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::shutdown_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;
using Lines = std::vector<std::string>;

namespace {

constexpr int critical = 2'000'000'000;

std::int64_t seconds(std::chrono::seconds time) { return testbed::patient(time) / 1s; }

/// A node with logind. Pods of priority 0 get 12 s or as long as is said, those from 1000 on 6 s, critical ones 6 s.
struct Node {
  Testbed testbed{{.node = {.memory_limit = 1 << 30}}};
  Logind logind;
  std::chrono::seconds first_group;
  std::chrono::seconds total{first_group.count() + 2 * seconds(6s)};

  explicit Node(std::optional<std::chrono::seconds> delay = {}, std::chrono::seconds first = 12s)
      : logind{testbed, delay.value_or(std::chrono::seconds(seconds(60s)))}, first_group{seconds(first)} {}

  [[nodiscard]] Agent::Options options(const std::string& settings = "") const {
    return {.thresholds = fmt::format("evictionHard: {{memory.available: 100Mi}}\n"
                                      "shutdownGracePeriodByPodPriority:\n"
                                      "- {{priority: 0, shutdownGracePeriodSeconds: {}}}\n"
                                      "- {{priority: 1000, shutdownGracePeriodSeconds: {}}}\n"
                                      "- {{priority: 2000000000, shutdownGracePeriodSeconds: {}}}\n",
                                      first_group.count(), seconds(6s), seconds(6s)),
            .sections = fmt::format("shutdown: {{logindDropIns: {}{}}}\n", logind.drop_ins().native(),
                                    settings.empty() ? "" : ", " + settings),
            .environment = {"DBUS_SYSTEM_BUS_ADDRESS=" + address()}};
  }
  [[nodiscard]] std::string address() const { return logind.bus().address(); }

  testbed::RunningPod run(const std::string& name, int priority, bool heeds_term = true,
                          std::optional<std::chrono::seconds> grace = {}) {
    Lines load{"pause"};
    if (!heeds_term) load.insert(load.begin(), "--ignore-term");
    return testbed.cri().run_pod({.name = name,
                                  .qos = QosClass::BestEffort,
                                  .priority = priority,
                                  .termination_grace_period = grace,
                                  .containers = {{.args = load}}});
  }
  [[nodiscard]] auto end_of(const testbed::RunningPod& pod) { return testbed.cri().container_status(pod.container()); }
};

void wait_for_state(const Agent& agent, const std::string& state) {
  testbed::wait_until("the shutdown is " + state, 60s, [&] { return agent.status().shutdown().state() == state; });
}

bool is_phase(const Event& event, std::string_view phase) {
  return event.kind() == Event::NODE_SHUTDOWN && event.node_shutdown().phase() == phase;
}

Event wait_for_phase(Agent& agent, std::string_view phase) {
  return agent.events().wait_for(fmt::format("NODE_SHUTDOWN {}", phase), 120s,
                                 [&](const Event& event) { return is_phase(event, phase); });
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

const Lines our_lock{"evictd shutdown delay"};

/// Critical, and yet kept away from a node that goes down.
constexpr auto new_pod = R"({"metadata": {"name": "late"}, "spec": {"priority": 2000000000,
                             "containers": [{"name": "main"}]}})";

}  // namespace

TEST_CASE(
    "the node waits for its pods: groups by rising priority, grace periods cut to the group's, then it goes down") {
  SKIP_IF(Logind::missing());
  Node node;
  Agent agent{node.testbed, node.options()};
  const auto vital = node.run("vital", critical);
  const auto quick = node.run("quick", 0);
  const auto brief = node.run("brief", 0, false, std::chrono::seconds(seconds(2s)));
  const auto stubborn = node.run("stubborn", 1000, false, 3600s);
  agent.wait_for_pods(4);
  wait_for_state(agent, "ready");
  CHECK(node.logind.inhibitors() == our_lock);
  CHECK(agent.status().shutdown().error().empty());
  CHECK(agent.status().shutdown().grace_period().seconds() == node.total.count());
  CHECK(agent.status().shutdown().inhibit_delay().seconds() == seconds(60s));

  node.logind.power_off();
  wait_for_phase(agent, "begun");
  CHECK(agent.status().shutdown().state() == "shutting down");
  const auto late = agent.admit(new_pod);
  CHECK_FALSE(late.admitted());
  CHECK(late.reason() == "NodeShutdown");
  CHECK(late.message() == "Pod was rejected as the node is shutting down.");
  CHECK(node.logind.systemd().started().empty());
  wait_for_phase(agent, "ended");
  testbed::wait_until("logind has the machine turned off", 60s,
                      [&] { return node.logind.systemd().started() == Lines{"poweroff.target"}; });
  CHECK(agent.status().shutdown().state() == "ended");
  CHECK(node.logind.inhibitors().empty());

  const auto log = agent.process().errors();
  CAPTURE(log);
  testbed::wait_until("all containers are dead", 60s, [&] {
    return std::ranges::none_of(std::array{&vital, &quick, &brief, &stubborn},
                                [&](const auto* pod) { return node.testbed.cri().is_running(*pod); });
  });
  CHECK(node.end_of(quick).exit_code() == 0);
  CHECK(node.end_of(brief).exit_code() == 137);
  CHECK(node.end_of(stubborn).exit_code() == 137);
  CHECK(node.end_of(vital).exit_code() == 0);
  CHECK(node.end_of(quick).finished_at() < node.end_of(brief).finished_at());
  CHECK(node.end_of(brief).finished_at() < node.end_of(stubborn).finished_at());
  const auto told = [&](const char* pod, std::int64_t grace) {
    const auto line =
        fmt::format("ending default/{} within {}", pod, evictd::core::to_string(std::chrono::seconds(grace)));
    CAPTURE(line);
    CHECK(contains(log, line));
    return log.find(line);
  };
  CHECK(told("brief", seconds(2s)) < told("stubborn", seconds(6s)));  // of its own hour
  CHECK(told("quick", std::min<std::int64_t>(seconds(12s), 30)) < told("stubborn", seconds(6s)));
  CHECK(told("stubborn", seconds(6s)) < told("vital", std::min<std::int64_t>(seconds(6s), 30)));
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/vital", 60s);
  CHECK(intended.eviction_intended().reason() == "Terminated");
  CHECK(intended.message() == "terminating default/vital: Pod was terminated in response to imminent node shutdown.");
}

TEST_CASE("a shutdown that comes to nothing: the node takes pods again and has a lock for the next one") {
  SKIP_IF(Logind::missing());
  Node node;
  Agent agent{node.testbed, node.options()};
  node.run("quick", 0);
  agent.wait_for_pods(1);
  wait_for_state(agent, "ready");
  for (std::size_t time = 1; time <= 2; ++time) {
    node.logind.power_off();
    testbed::wait_until("logind has the machine turned off", 120s,
                        [&] { return node.logind.systemd().started().size() == time; });
    wait_for_state(agent, "ended");
    node.logind.systemd().finish_job();  // and yet it is still there
    wait_for_state(agent, "ready");
    testbed::wait_until("the lock is taken anew", 60s, [&] { return node.logind.inhibitors() == our_lock; });
    CHECK(agent.admit(new_pod).admitted());
  }
  const auto events = agent.events().all();
  CHECK(std::ranges::count_if(events, [](const Event& event) { return is_phase(event, "cancelled"); }) == 2);
}

TEST_CASE("a delay that is too short is told; when logind gives up in the middle, the later groups live on") {
  SKIP_IF(Logind::missing());
  Node node{3s, 24s};  // logind gives up long before the first group's time is over
  Agent agent{node.testbed, node.options()};
  const auto vital = node.run("vital", critical);
  const auto stubborn = node.run("stubborn", 0, false, 3600s);
  agent.wait_for_pods(2);
  wait_for_state(agent, "ready");
  CHECK(
      agent.status().shutdown().error().starts_with("systemd-logind lets a shutdown wait for 3s only, and the pods' "));
  CHECK_FALSE(std::filesystem::exists(node.logind.drop_ins() / "99-evictd.conf"));
  const auto table = testbed::run({testbed::evictctl_program(), "--address", agent.address(), "status"});
  CHECK(contains(table, "shutdown  ready, waits at most 3s, pods may take "));

  node.logind.systemd().refuse_jobs(true);
  node.logind.power_off();
  wait_for_phase(agent, "begun");
  wait_for_phase(agent, "cancelled");
  wait_for_state(agent, "ready");
  testbed::wait_until("the lock is taken anew", 60s, [&] { return node.logind.inhibitors() == our_lock; });
  // Who was told to end still ends.
  testbed::wait_until("the stubborn one is dead", 120s, [&] { return !node.testbed.cri().is_running(stubborn); });
  const auto said = agent.process().errors();
  CAPTURE(said);
  CHECK(node.testbed.cri().is_running(vital));
  CHECK_FALSE(contains(said, "ending default/vital"));
}

TEST_CASE("a delay that is too short is raised where that is configured, by a logind that reads the drop-in") {
  SKIP_IF(Logind::missing());
  Node node{3s};
  Agent agent{node.testbed, node.options("raiseInhibitDelay: true")};
  wait_for_state(agent, "ready");
  CHECK(agent.status().shutdown().error().empty());
  CHECK(agent.status().shutdown().inhibit_delay().seconds() == node.total.count());
  CHECK(contains(testbed::read_file(node.logind.drop_ins() / "99-evictd.conf"),
                 fmt::format("[Login]\nInhibitDelayMaxSec={}\n", node.total.count())));
}

TEST_CASE("a bus that goes and comes back costs no shutdown, and neither does a logind that is restarted") {
  SKIP_IF(Logind::missing());
  Node node;
  Agent agent{node.testbed, node.options()};
  const auto quick = node.run("quick", 0);
  agent.wait_for_pods(1);
  wait_for_state(agent, "ready");
  SUBCASE("the bus") {
    node.logind.restart_bus();
    agent.process().wait_until_says("node shutdown: ");  // logind was away
  }
  SUBCASE("logind") { node.logind.restart(); }
  testbed::wait_until("evictd is connected again", 60s, [&] {
    return node.logind.inhibitors() == our_lock && agent.status().shutdown().error().empty();
  });
  node.logind.power_off();
  testbed::wait_until("logind has the machine turned off", 120s,
                      [&] { return node.logind.systemd().started() == Lines{"poweroff.target"}; });
  CHECK_FALSE(node.testbed.cri().is_running(quick));
}

TEST_CASE("an evictd that is killed in the middle is followed by one that goes on where it was") {
  SKIP_IF(Logind::missing());
  // The stubborn one must outlast the end of the quick one and a start of evictd, and logind the pods, on a machine
  // that stalls as well.
  Node node{std::chrono::seconds(seconds(120s)), 40s};
  // Without evictd's lock the machine would be turned off at once.
  const auto other = node.logind.take_lock("somebody else");
  std::optional<Agent> agent{std::in_place, node.testbed, node.options()};
  const auto vital = node.run("vital", critical);
  const auto quick = node.run("quick", 0);
  const auto stubborn = node.run("stubborn", 0, false, 3600s);
  agent->wait_for_pods(3);
  wait_for_state(*agent, "ready");
  node.logind.power_off();
  testbed::wait_until("the quick one has ended", 60s, [&] { return !node.testbed.cri().is_running(quick); });
  testbed::wait_until("evictd knows that", 60s, [&] {
    return contains(testbed::read_file(node.testbed.directory() / "shutdown.json"),
                    fmt::format("\"ended\":[\"{}\"]", quick.uid));
  });
  agent->process().kill();
  REQUIRE(node.logind.preparing_for_shutdown());
  CHECK(node.testbed.cri().is_running(stubborn));
  CHECK(node.testbed.cri().is_running(vital));

  const auto before = agent->process().errors();
  CAPTURE(before);
  agent.emplace(node.testbed, node.options());
  INFO("after: ", agent->process().errors());  // as it is where something fails
  wait_for_phase(*agent, "begun");
  wait_for_phase(*agent, "ended");
  testbed::wait_until("all containers are dead", 60s, [&] {
    return !node.testbed.cri().is_running(stubborn) && !node.testbed.cri().is_running(vital);
  });
  CHECK(node.end_of(stubborn).exit_code() == 137);
  CHECK(node.end_of(vital).exit_code() == 0);
  agent->process().wait_until_says("ending default/vital");
  const auto log = agent->process().errors();
  CHECK_FALSE(contains(log, "ending default/quick"));
  CHECK(contains(log, "ending default/stubborn within "));
  // Not the group's whole period again.
  CHECK_FALSE(
      contains(log, fmt::format("ending default/stubborn within {}", evictd::core::to_string(node.first_group))));
  CHECK(log.find("ending default/stubborn") < log.find("ending default/vital"));
}

TEST_CASE("a service manager that keeps the lock keeps the node waiting while evictd is killed and started again") {
  SKIP_IF(Logind::missing());
  Node node;
  integration::DescriptorStore systemd{node.testbed.directory() / "notify"};
  auto options = node.options();
  options.environment.push_back(systemd.variable());
  std::optional<Agent> agent{std::in_place, node.testbed, options};
  const auto vital = node.run("vital", critical);
  const auto stubborn = node.run("stubborn", 0, false, 3600s);
  agent->wait_for_pods(2);
  wait_for_state(*agent, "ready");
  testbed::wait_until("the lock is with the service manager", 60s, [&] { return systemd.stored().has_value(); });
  node.logind.power_off();
  wait_for_phase(*agent, "begun");
  agent->process().wait_until_says("ending default/stubborn");
  agent->process().kill();
  REQUIRE(systemd.stored().has_value());
  CHECK(node.logind.inhibitors() == our_lock);

  // As systemd starts it again: the descriptor is number 3.
  options.wrapper = {"sh", "-c",
                     fmt::format("export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=evictd-shutdown; "
                                 "exec \"$@\" 3>/proc/{}/fd/{}",
                                 ::getpid(), *systemd.stored()),
                     "sh"};
  agent.emplace(node.testbed, options);
  wait_for_phase(*agent, "begun");
  CHECK(node.logind.systemd().started().empty());
  wait_for_phase(*agent, "ended");
  testbed::wait_until("the service manager was told to let go", 60s, [&] { return !systemd.stored().has_value(); });
  testbed::wait_until("logind has the machine turned off", 60s,
                      [&] { return node.logind.systemd().started() == Lines{"poweroff.target"}; });
  testbed::wait_until("all containers are dead", 60s, [&] {
    return !node.testbed.cri().is_running(stubborn) && !node.testbed.cri().is_running(vital);
  });
  CHECK(node.end_of(vital).exit_code() == 0);
}

TEST_CASE("evictd check says whether logind is there and whether it lets a shutdown wait long enough") {
  SKIP_IF(Logind::missing());
  Node node{7s};
  testbed::replace_file(node.testbed.directory() / "kubelet.yaml",
                        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
                        "shutdownGracePeriod: 9s\nshutdownGracePeriodCriticalPods: 4s\n");
  const auto text =
      testbed::run({"env", "DBUS_SYSTEM_BUS_ADDRESS=" + node.address(), testbed::evictd_program(), "check",
                    "--kubelet-config", node.testbed.directory() / "kubelet.yaml", "-o", "json"});
  CAPTURE(text);
  CHECK(contains(text, "InhibitDelayMaxUSec is 7s, the pods' shutdown grace periods take 9s"));
  CHECK(contains(text, "unless shutdown.raiseInhibitDelay is set"));
}

TEST_CASE("without shutdownGracePeriod, and in a dry run, no lock is taken and nothing is said of shutdowns") {
  SKIP_IF(Logind::missing());
  Node node;
  auto options = node.options();
  SUBCASE("without") { options.thresholds = "evictionHard: {memory.available: 100Mi}\n"; }
  SUBCASE("dry run") { options.arguments = {"--dry-run"}; }
  Agent agent{node.testbed, options};
  testbed::wait_until("evictd is at work", 60s, [&] { return agent.status().passes() > 1; });
  CHECK_FALSE(agent.status().has_shutdown());
  CHECK(node.logind.inhibitors().empty());
}

}  // namespace integration::shutdown_test
