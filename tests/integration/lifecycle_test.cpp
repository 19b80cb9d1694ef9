// How a pod's time to stop is spent: preStop hooks and the order of its containers, with real pods whose specs come
// from a manifest.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kube/api_server.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::lifecycle_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

/// A node of 1 GiB whose evictd reads manifests and evicts softly, and on it a pod of a main container and the sidecars
/// proxy and log, which all see its directory as /control.
struct Node {
  Testbed testbed{gibi_node};
  std::filesystem::path manifests = testbed.directory() / "manifests";
  std::filesystem::path control = testbed.directory() / "control";
  testbed::RunningPod pod{};

  Node() {
    std::filesystem::create_directory(manifests);
    std::filesystem::create_directory(control);
    hold(16 * mebi);
  }
  void hold(std::int64_t bytes) const { testbed::replace_file(control / "size", std::to_string(bytes)); }

  [[nodiscard]] Agent::Options options(int seconds) const {
    return {.thresholds = fmt::format("evictionHard: {{}}\nevictionSoft: {{memory.available: 500Mi}}\n"
                                      "evictionSoftGracePeriod: {{memory.available: 1s}}\n"
                                      "evictionMaxPodGracePeriod: {}\n",
                                      seconds),
            .sections = fmt::format("podSources: {{manifests: {}}}\n", manifests.native())};
  }
  /// Each hook is what stands behind "lifecycle: {preStop: {"; empty for none. Its terminationGracePeriodSeconds is
  /// what the threshold permits at most.
  void describe(const std::string& main, const std::string& proxy = "", const std::string& log = "") const {
    const auto lifecycle = [](const std::string& hook) {
      return hook.empty() ? "" : ", lifecycle: {preStop: {" + hook + "}}";
    };
    testbed::replace_file(manifests / "hog.yaml",
                          fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: hog}}\nspec:\n"
                                      "  terminationGracePeriodSeconds: 3600\n"
                                      "  initContainers:\n"
                                      "  - {{name: proxy, restartPolicy: Always{}}}\n"
                                      "  - {{name: log, restartPolicy: Always{}}}\n"
                                      "  containers:\n"
                                      "  - {{name: main{}}}\n",
                                      lifecycle(proxy), lifecycle(log), lifecycle(main)));
  }
  void run(const Agent& agent, bool heeds_term = true) {
    testbed::PodSpec spec{.name = "hog", .qos = QosClass::BestEffort};
    for (const auto* name : {"proxy", "log", "main"}) {
      auto& container = spec.containers.emplace_back(testbed::ContainerSpec{.name = name, .args = {"pause"}});
      container.mounts.push_back({.host_path = control, .container_path = "/control"});
    }
    auto& main = spec.containers.back();
    main.args = {"follow", "/control/size"};
    if (!heeds_term) main.args.insert(main.args.begin(), "--ignore-term");
    pod = testbed.cri().run_pod(spec);
    agent.wait_for_pods(1);
    testbed::wait_until("the manifest is read", 60s, [&] {
      const auto status = agent.status();
      return status.pod_sources_size() == 1 && status.pod_sources(0).pods() == 1;
    });
  }
  [[nodiscard]] auto end_of(const char* container) { return testbed.cri().container_status(pod.container(container)); }
  [[nodiscard]] std::string hooks() const { return testbed::try_read_file(control / "hooks").value_or(""); }
};

std::string command(const std::string& script) { return "exec: {command: [/bin/sh, -c, \"" + script + "\"]}"; }

}  // namespace

TEST_CASE("within the pod's time its hooks run, then the main container ends, then the sidecars in reverse") {
  Node node;
  evictd::test::ApiServer server;
  server.otherwise(evictd::test::answers(200, "bye"));
  node.describe(command("echo main >> /control/hooks"), command("echo proxy >> /control/hooks"),
                fmt::format("httpGet: {{host: 127.0.0.1, port: {}, path: /log}}", server.port()));
  Agent agent{node.testbed, node.options(600)};
  node.run(agent);
  node.hold(700 * mebi);
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 60s);
  CHECK(intended.eviction_intended().grace_period_seconds() == 600);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 120s);
  const auto log = agent.process().errors();
  CAPTURE(log);
  const auto hooks = node.hooks();
  CAPTURE(hooks);
  CHECK((hooks == "main\nproxy\n" || hooks == "proxy\nmain\n"));
  CHECK(server.lines() == std::vector<std::string>{"GET /log"});
  for (const auto* container : {"main", "log", "proxy"}) CHECK(node.end_of(container).exit_code() == 0);
  CHECK(node.end_of("main").finished_at() < node.end_of("log").finished_at());
  CHECK(node.end_of("log").finished_at() < node.end_of("proxy").finished_at());
  CHECK(log.find("preStop") == std::string::npos);
}

TEST_CASE("a hook that overruns costs its pod's time and no more, and so does a container that ignores SIGTERM") {
  Node node;
  node.describe(command("echo begun >> /control/hooks; exec sleep 3600"));
  Agent agent{node.testbed, node.options(15)};
  node.run(agent, false);
  node.hold(700 * mebi);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 120s);
  CHECK(node.hooks() == "begun\n");
  CHECK(node.end_of("main").exit_code() == 137);
  CHECK(nothing_left(node.testbed, node.pod));
  agent.process().wait_until_says("the preStop hook of container main has not ended within the grace period of 15s");
}

TEST_CASE("an evictd that is killed while a hook runs is followed by one that runs none and ends the pod") {
  Node node;
  node.describe(command("echo begun >> /control/hooks; exec sleep 3600"));
  std::optional<Agent> agent{std::in_place, node.testbed, node.options(600)};
  node.run(*agent);
  node.hold(700 * mebi);
  testbed::wait_until("the hook runs", 60s, [&] { return node.hooks() == "begun\n"; });
  agent->process().kill();
  CHECK(node.testbed.cri().is_running(node.pod));
  agent.emplace(node.testbed, node.options(600));
  testbed::wait_until("the pod is gone", 60s, [&] { return nothing_left(node.testbed, node.pod); });
  CHECK(node.hooks() == "begun\n");
  CHECK(node.end_of("main").exit_code() == 0);
}

}  // namespace integration::lifecycle_test
