#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::pod_sources_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

constexpr auto hog_manifest = R"(apiVersion: v1
kind: Pod
metadata: {name: hog}
spec:
  priority: 1000
  containers:
  - {name: main, resources: {requests: {memory: 64Mi}}}
)";

/// A node of 1 GiB whose evictd reads manifests, with a small pod and one that takes what the file "size" says.
struct Node {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  std::filesystem::path manifests = testbed.directory() / "manifests";
  std::filesystem::path size = testbed.directory() / "size";

  Node() {
    std::filesystem::create_directory(manifests);
    hold(32 * mebi);
  }
  void hold(std::int64_t bytes) const { testbed::replace_file(size, std::to_string(bytes)); }

  [[nodiscard]] Agent::Options options() const {
    return {
        .thresholds = "evictionHard: {memory.available: 300Mi}",
        .sections = fmt::format("podSources: {{manifests: {}}}\nkubernetes: {{nodeName: Lab}}\n", manifests.native())};
  }
  void run_pods() {
    static_cast<void>(testbed.cri().run_pod(
        {.name = "small", .qos = QosClass::BestEffort, .containers = {{.args = {"hold", "64Mi"}}}}));
    testbed::ContainerSpec follower{.args = {"follow", "/control/size"}};
    follower.mounts.push_back({.host_path = testbed.directory(), .container_path = "/control"});
    static_cast<void>(
        testbed.cri().run_pod({.name = "hog-lab", .qos = QosClass::BestEffort, .containers = {follower}}));
  }
};

void wait_for_source(const Agent& agent, std::string_view state, std::uint32_t pods) {
  testbed::wait_until(fmt::format("the manifests are {} with {} pods", state, pods), 60s, [&] {
    const auto status = agent.status();
    return status.pod_sources_size() == 1 && status.pod_sources(0).state() == state &&
           status.pod_sources(0).pods() == pods;
  });
}

}  // namespace

TEST_CASE("pods are ranked by what their manifests say, also after the directory has vanished") {
  Node node;
  Agent agent{node.testbed, node.options()};
  wait_for_source(agent, "synced", 0);
  node.run_pods();
  agent.wait_for_pods(2);
  testbed::replace_file(node.manifests / "hog.yaml", hog_manifest);
  wait_for_source(agent, "synced", 1);

  std::filesystem::remove_all(node.manifests);
  wait_for_source(agent, "stale", 1);
  CHECK(agent.status().pod_sources(0).has_stale_since());
  CHECK(agent.status().pod_sources(0).error().find("cannot be listed") != std::string::npos);
  agent.events().wait_for("the manifests are degraded", 30s, [](const Event& event) {
    return event.kind() == Event::SOURCE_DEGRADED && event.source_degraded().source() == "podSources.manifests";
  });
  const auto table = testbed::run({testbed::evictctl_program(), "--address", agent.address(), "status"});
  CAPTURE(table);
  CHECK(table.find("POD SOURCE") != std::string::npos);
  CHECK(table.find("stale for ") != std::string::npos);

  node.hold(800 * mebi);
  // The small pod goes first, for all that the hog uses: its priority is the lower one.
  const auto first = agent.events().wait_for(Event::EVICTION_INTENDED, "default/small", 60s).eviction_intended();
  REQUIRE(first.ranking_size() == 2);
  CHECK(first.ranking(0).pod().name() == "small");
  CHECK(first.ranking(1).pod().name() == "hog-lab");
  CHECK(first.ranking(1).priority() == 1000);
  CHECK(first.ranking(1).request() == 64 * mebi);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog-lab", 60s);
}

TEST_CASE("a manifest that is no good is said once, and its pod is evicted by what it said before") {
  Node node;
  testbed::replace_file(node.manifests / "hog.yaml", hog_manifest);
  Agent agent{node.testbed, node.options()};
  node.run_pods();
  agent.wait_for_pods(2);
  wait_for_source(agent, "synced", 1);
  testbed::replace_file(node.manifests / "hog.yaml", "metadata: {name: hog}\nspec: {priority: high}\n");
  agent.process().wait_until_says("hog.yaml:2: spec.priority: ");
  node.hold(800 * mebi);
  const auto first = agent.events().wait_for(Event::EVICTION_INTENDED, "default/small", 60s).eviction_intended();
  CHECK(first.ranking(1).priority() == 1000);
}

}  // namespace integration::pod_sources_test
