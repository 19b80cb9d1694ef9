#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "history.hpp"
#include "kube/api_server.hpp"
#include "kube/model_server.hpp"
#include "logind.hpp"
#include "support/skip.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::cluster_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::fixture::ModelServer;
using evictd::test::ApiServer;
using evictd::test::Exchange;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

/// A node of 1 GiB and 300 process ids in a cluster whose API server keeps a model of its objects.
struct Cluster {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi, .pids_limit = 300}}};
  std::mutex mutex;  // around model: the server's threads change it
  ModelServer model;
  ApiServer server;

  Cluster() {
    server.otherwise([this](Exchange& exchange) {
      const auto& asked = exchange.asked();
      evictd::kube::Response response;
      {
        const std::scoped_lock lock{mutex};
        response = model.handle({.method = asked.method, .target = asked.target, .body = asked.body});
      }
      exchange.answer(response.status, response.body);
    });
  }

  [[nodiscard]] Agent::Options options() const {
    const auto kubeconfig = testbed.directory() / "kubeconfig";
    testbed::replace_file(kubeconfig, fmt::format("apiVersion: v1\n"
                                                  "kind: Config\n"
                                                  "current-context: lab\n"
                                                  "contexts: [{{name: lab, context: {{cluster: lab, user: lab}}}}]\n"
                                                  "clusters: [{{name: lab, cluster: {{server: \"{}\"}}}}]\n"
                                                  "users: [{{name: lab, user: {{}}}}]\n",
                                                  server.url()));
    return {.thresholds = "evictionHard: {memory.available: 300Mi}",
            .sections = fmt::format("kubernetes: {{nodeName: node-1, kubeconfig: {}, report: status, nodeConditions: "
                                    "conditions, startSpread: 0s}}\n",
                                    kubeconfig.native())};
  }
  /// Runs a pod that grows, and gives it an API object.
  std::string run_hog() {
    const auto hog = testbed.cri().run_pod(
        {.name = "hog", .qos = QosClass::BestEffort, .containers = {{.args = {"grow", "16Mi", "200Mi/s"}}}});
    add(hog);
    return hog.uid;
  }
  /// Gives a pod in "default" an API object.
  void add(const testbed::RunningPod& pod) {
    const std::scoped_lock lock{mutex};
    model.pods["default/" + pod.name] = {.uid = pod.uid};
  }
  template <class Look>
  auto look(Look look) {
    const std::scoped_lock lock{mutex};
    return look(model);
  }
  /// Once the API server knows that it failed.
  [[nodiscard]] ModelServer::Pod wait_for_failed(const std::string& pod) {
    const auto now = [&] { return look([&](const ModelServer& known) { return known.pods.at("default/" + pod); }); };
    testbed::wait_until("it is told of " + pod, 60s, [&] { return now().phase == "Failed"; });
    return now();
  }
  [[nodiscard]] std::ptrdiff_t times(const std::string& entry) {
    return look([&](const ModelServer& known) { return std::ranges::count(known.log, entry); });
  }
};

}  // namespace

TEST_CASE("an eviction while the API server is away reaches it once it is back, and is told once") {
  Cluster cluster;
  Agent agent{cluster.testbed, cluster.options()};
  testbed::wait_until("the node's conditions are told", 30s, [&] {
    return cluster.look([](const ModelServer& model) { return model.node.conditions.contains("MemoryPressure"); });
  });
  CHECK(cluster.look([](const ModelServer& model) { return model.node.conditions.at("MemoryPressure"); }) == "False");

  cluster.server.stop_listening();
  const auto uid = cluster.run_hog();
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);  // nobody waited for the API server
  CHECK(cluster.times("status " + uid) == 0);
  CHECK(agent.status().cluster_reports().waiting() >= 3);  // the status, its Event and the node's state
  CHECK(agent.status().cluster_reports().has_last_failure());
  const auto table = testbed::run({testbed::evictctl_program(), "--address", agent.address(), "status"});
  CHECK_MESSAGE(table.find("reports   ") != std::string::npos, table);

  cluster.server.listen_again();
  testbed::wait_until("everything is told", 90s, [&] { return agent.status().cluster_reports().waiting() == 0; });
  CHECK(cluster.times("status " + uid) == 1);
  CHECK(cluster.times("event " + uid) == 1);
  CHECK(cluster.times("event node-1") == 1);
  const auto pod = cluster.look([](const ModelServer& model) { return model.pods.at("default/hog"); });
  CHECK(pod.phase == "Failed");
  CHECK(pod.reason == "Evicted");
  CHECK(pod.last_patch.find("The node was low on resource: memory. Threshold quantity: 300Mi") != std::string::npos);
  CHECK(pod.last_patch.find("TerminationByKubelet") != std::string::npos);
  const auto node = cluster.look([](const ModelServer& model) { return model.node; });
  CHECK(node.conditions.at("MemoryPressure") == "True");
  CHECK(node.taints.find("node.kubernetes.io/memory-pressure") != std::string::npos);
}

TEST_CASE("a kubelet writes over the status of an evicted pod and starts it again: it ends evicted all the same") {
  Cluster cluster;
  Agent agent{cluster.testbed, cluster.options()};
  const auto uid = cluster.run_hog();
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);
  const auto is_evicted = [&] {
    return cluster.look([](const ModelServer& model) {
      return model.pods.at("default/hog").phase == "Failed" && model.pods.at("default/hog").reason == "Evicted";
    });
  };
  testbed::wait_until("its status is told", 30s, is_evicted);
  {
    const std::scoped_lock lock{cluster.mutex};
    cluster.model.overwrite("default/hog");
  }
  testbed::wait_until("it is told again", 30s, is_evicted);
  CHECK(cluster.times("status " + uid) == 2);

  // Its memory is short again: that is another eviction, and told as one.
  static_cast<void>(cluster.testbed.cri().run_pod({.name = "hog",
                                                   .uid = uid,
                                                   .attempt = 1,
                                                   .qos = QosClass::BestEffort,
                                                   .containers = {{.args = {"grow", "16Mi", "200Mi/s"}}}}));
  {
    const std::scoped_lock lock{cluster.mutex};
    cluster.model.overwrite("default/hog");
  }
  testbed::wait_until("the second eviction's end", 60s, [&] {
    return integration::count(agent.events().all(), Event::CLEANUP_DONE, "default/hog") == 2;
  });
  testbed::wait_until("it is told as well", 30s, [&] {
    const auto reports = agent.status().cluster_reports();
    return reports.statuses() == 2 + reports.statuses_again();
  });
  CHECK(is_evicted());
  CHECK(agent.status().cluster_reports().statuses_again() >= 1);
  CHECK(agent.status().cluster_reports().dropped() == 0);
}

TEST_CASE(
    "a shutdown is an Event on the node, which is not ready and whose pods are Terminated, until it is called off") {
  SKIP_IF(Logind::missing());
  Cluster cluster;
  Logind logind{cluster.testbed, 60s};
  auto options = cluster.options();
  options.kubelet = "shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 5s\n";
  options.sections += fmt::format("shutdown: {{logindDropIns: {}}}\n", logind.drop_ins().native());
  options.environment = {"DBUS_SYSTEM_BUS_ADDRESS=" + logind.bus().address()};
  Agent agent{cluster.testbed, options};
  const auto web =
      cluster.testbed.cri().run_pod({.name = "web", .qos = QosClass::BestEffort, .containers = {{.args = {"pause"}}}});
  cluster.add(web);
  agent.wait_for_pods(1);
  const auto wait_for_state = [&](const std::string& state) {
    testbed::wait_until("the shutdown is " + state, 60s, [&] { return agent.status().shutdown().state() == state; });
  };
  const auto wait_for_ready = [&](const std::string& status, const std::string& message) {
    testbed::wait_until("Ready is " + status, 60s, [&] {
      return cluster.look([&](const ModelServer& model) {
        const auto& node = model.node;
        return node.conditions.contains("Ready") && node.conditions.at("Ready") == status &&
               node.messages.at("Ready") == message;
      });
    });
  };
  wait_for_state("ready");
  testbed::wait_until("everything is told", 60s, [&] { return agent.status().cluster_reports().waiting() == 0; });
  CHECK(cluster.look([](const ModelServer& model) { return !model.node.conditions.contains("Ready"); }));

  logind.power_off();
  wait_for_ready("False", "node is shutting down");
  const auto pod = cluster.wait_for_failed("web");
  CHECK(pod.reason == "Terminated");
  CHECK(pod.last_patch.find("Pod was terminated in response to imminent node shutdown.") != std::string::npos);
  CHECK(pod.last_patch.find("DisruptionTarget") != std::string::npos);
  testbed::wait_until("logind has the machine turned off", 60s, [&] { return logind.systemd().started().size() == 1; });
  testbed::wait_until("the Event is told", 60s, [&] { return cluster.times("event node-1") == 1; });

  logind.systemd().finish_job();  // and yet it is still there
  wait_for_state("ready");
  wait_for_ready("True", "kubelet is posting ready status");
  testbed::wait_until("the second Event is told", 60s, [&] { return cluster.times("event node-1") == 2; });
}

TEST_CASE("a pod that makes room for a critical one is Preempting, and the target of a disruption") {
  Cluster cluster;
  const auto large =
      cluster.testbed.cri().run_pod({.name = "large",
                                     .qos = QosClass::Burstable,
                                     .containers = {{.args = {"hold", "16Mi"}, .memory_request = 500 * mebi}}});
  cluster.add(large);
  Agent agent{cluster.testbed, cluster.options()};
  agent.wait_for_pod(large.uid);
  const auto vital = cluster.testbed.directory() / "vital.yaml";
  testbed::replace_file(vital,
                        "metadata: {name: vital}\n"
                        "spec:\n"
                        "  priorityClassName: system-node-critical\n"
                        "  containers: [{name: main, resources: {requests: {memory: 500Mi}}}]\n");
  static_cast<void>(testbed::run(
      {testbed::evictctl_program(), "--address", agent.address(), "admit", "-f", vital, "--reserve"}, 2min));
  const auto pod = cluster.wait_for_failed("large");
  CHECK(pod.reason == "Preempting");
  CHECK(pod.last_patch.find("DisruptionTarget") != std::string::npos);
  CHECK(pod.last_patch.find("TerminationByKubelet") != std::string::npos);
  CHECK(pod.last_patch.find("Pod was preempted by Kubelet to accommodate a critical pod.") != std::string::npos);
  testbed::wait_until("the Event is told", 60s, [&] { return cluster.times("event " + large.uid) == 1; });
}

TEST_CASE("a pod that takes the process ids is Evicted, and the target of a disruption") {
  Cluster cluster;
  auto options = cluster.options();
  options.thresholds = "evictionHard: {pid.available: '150'}";
  options.notifier = "fallbackInterval: 500ms";
  Agent agent{cluster.testbed, options};
  const auto control = cluster.testbed.directory() / "control";
  std::filesystem::create_directory(control);
  testbed::PodSpec spec{.name = "forks", .qos = QosClass::BestEffort};
  spec.containers = {{.command = {"sh", "-c", "until [ -e /control/go ]; do sleep 1; done; exec load fork 180"}}};
  spec.containers[0].mounts.push_back({.host_path = control, .container_path = "/control"});
  const auto forks = cluster.testbed.cri().run_pod(spec);
  cluster.add(forks);
  agent.wait_for_pod(forks.uid);  // or the API server is told of nobody by this name
  testbed::write_file(control / "go", "");

  const auto pod = cluster.wait_for_failed("forks");
  CHECK(pod.reason == "Evicted");
  CHECK(pod.last_patch.find("The node was low on resource: pids.") != std::string::npos);
  CHECK(pod.last_patch.find("DisruptionTarget") != std::string::npos);
  CHECK(pod.last_patch.find("TerminationByKubelet") != std::string::npos);
  testbed::wait_until("the node's condition is told", 60s, [&] {
    return cluster.look([](const ModelServer& model) {
      return model.node.conditions.contains("PIDPressure") && model.node.conditions.at("PIDPressure") == "True";
    });
  });
}

TEST_CASE("a dry run tells the API server nothing") {
  Cluster cluster;
  auto options = cluster.options();
  options.arguments.emplace_back("--dry-run");
  Agent agent{cluster.testbed, options};
  static_cast<void>(cluster.run_hog());
  agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 60s);
  CHECK_FALSE(agent.status().has_cluster_reports());
  CHECK(cluster.server.connections() == 0);
}

}  // namespace integration::cluster_test
