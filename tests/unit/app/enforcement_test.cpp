#include "app/enforcement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admission/chain.hpp"
#include "agent/loop.hpp"
#include "app/admission.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "events/event_log.hpp"
#include "fixture/captured_log.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::app::enforcement_test {
namespace {

using agent::Loop;
using fixture::dir;
using fixture::file;
using fixture::Tree;

struct FakeNode final : agent::AdmittingNode {
  [[nodiscard]] admission::NodeSnapshot snapshot() const override { return {}; }
  void save(const admission::Allocations&, const admission::Coming&, Written) override {}
};

/// Two CPUs, of which the first is nobody's own.
admission::AllocationSettings two_cpus() {
  return {.cpu_policy = "static",
          .topology = fixture::value_of(admission::make_topology({.cores_per_numa_node = 2})),
          .reserved_cpus = {0}};
}

fixture::Entry root_of_1() {
  return dir("1", {file("mountinfo", "24 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n")});
}

fixture::Entry kubelet_process() {
  return dir("812", {file("comm", "kubelet\n"), file("cmdline", std::string("/usr/bin/kubelet\0", 17)),
                     file("cgroup", "0::/system.slice/kubelet.service\n"),
                     file("status", "Name:\tkubelet\nUid:\t0\t0\t0\t0\nNSpid:\t812\n"),
                     file("mountinfo", "24 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n")});
}

/// A node with one pod, on which CPUs are given away unless the test says otherwise.
struct Scene {
  Scene() {
    configuration.kubelet.cpu_manager_policy = "static";
    configuration.agent.node.proc_mount = proc.path();
    runtime.put(test::sandbox("s-web", "web", "web"), test::sandbox_json("/kubepods/podweb"));
    runtime.put(test::container("c-web", "s-web", "main"), test::container_json(1000));
  }
  ~Scene() {
    if (enforcement != nullptr) enforcement->stop();
    loop.tracker.stop();
  }
  bool make() {
    enforcement = Enforcement::make(loop.reactor.get_executor(), configuration, allocator,
                                    {.runtime = loop.runtime,
                                     .pods = loop.listed,
                                     .tracker = loop.tracker,
                                     .admission = admission,
                                     .clock = loop.clock});
    return enforcement != nullptr;
  }
  void start() {
    REQUIRE(make());
    runtime.start();
    enforcement->start();
    loop.runtime.watch(loop.lister);
    loop.tracker.start();
  }

  Tree proc{{root_of_1()}};
  Configuration configuration;
  test::FakeRuntime runtime;
  Loop loop{{}, core::Signal::MemoryAvailable, runtime.endpoint()};
  events::EventLog events{loop.reactor.get_executor()};
  agent::Recorder recorder{events};
  FakeNode node;
  agent::PodAdmission admission{{.reactor = loop.reactor.get_executor(),
                                 .pods = loop.tracker,
                                 .evictions = loop.evictions,
                                 .catalog = loop.catalog,
                                 .recorder = recorder,
                                 .chain = fixture::value_of(admission::kubelet_chain()),
                                 .node = node,
                                 .clock = loop.clock},
                                {}};
  std::shared_ptr<const admission::ResourceAllocator> allocator = std::make_shared<const admission::ResourceAllocator>(
      fixture::value_of(admission::ResourceAllocator::make(two_cpus())));
  std::unique_ptr<Enforcement> enforcement;
};

}  // namespace

TEST_CASE("containers are confined where a policy gives them something, and no key says that others do it") {
  using enum config::InKubeletsPlace;
  Scene scene;
  auto& agent = scene.configuration.agent;
  auto& kubelet = scene.configuration.kubelet;
  CHECK(scene.make());
  kubelet.cpu_manager_policy = "none";
  CHECK_FALSE(scene.make());
  kubelet.memory_manager_policy = "Static";
  CHECK(scene.make());
  agent.admission.enforce = Off;
  CHECK_FALSE(scene.make());
}

TEST_CASE("whoever is to ask a kubelet, or the API server, has one on the node, which confines containers itself") {
  Scene scene;
  auto& agent = scene.configuration.agent;
  SUBCASE("the kubelet is a source of pods") { agent.pod_sources.kubelet_url = "https://127.0.0.1:10250"; }
  SUBCASE("it is asked for its configuration") { agent.thresholds.configz = true; }
  SUBCASE("the node belongs to a cluster") { agent.pod_sources.api_server = true; }
  CHECK_FALSE(scene.make());
  agent.admission.enforce = config::InKubeletsPlace::On;
  CHECK(scene.make());
}

TEST_CASE("without a kubelet containers are confined") {
  Scene scene;
  scene.start();
  CHECK(test::run_until(scene.loop.reactor, [&] { return !scene.runtime.cpusets().empty(); }));
  CHECK(scene.runtime.cpusets() == std::vector<std::string>{"c-web cpus 0-1"});
}

TEST_CASE("beside a kubelet that runs nothing is written, unless it is to be") {
  fixture::CapturedLog log;
  Scene scene;
  scene.proc.add("", kubelet_process());
  SUBCASE("auto") {
    scene.start();
    CHECK(test::run_until(scene.loop.reactor, [&] {
      return std::ranges::any_of(log.lines(), [](const auto& line) { return line.starts_with("a kubelet runs: "); });
    }));
    CHECK(scene.runtime.cpusets().empty());
  }
  SUBCASE("on") {
    scene.configuration.agent.admission.enforce = config::InKubeletsPlace::On;
    scene.start();
    CHECK(test::run_until(scene.loop.reactor, [&] { return !scene.runtime.cpusets().empty(); }));
  }
}

TEST_CASE("policies that evictd does not know are left out of a kubelet's configuration, and what else it says stays") {
  Configuration configuration;
  configuration.kubelet.cpu_manager_policy = "static";
  configuration.kubelet.cpu_manager_policy_options = {{"of-a-newer-kubelet", "true"}};
  configuration.kubelet.kube_reserved = {{"cpu", core::Quantity::count(1)}};
  configuration.kubelet.max_pods = 60;
  REQUIRE_FALSE(check_admission(configuration));
  leave_out_impossible_allocation(configuration);
  CHECK(check_admission(configuration));
  REQUIRE(configuration.no_allocation);
  CHECK(configuration.no_allocation->find("of-a-newer-kubelet") != std::string::npos);
  CHECK(configuration.kubelet.cpu_manager_policy == "none");
  CHECK(configuration.kubelet.max_pods == 60);
  CHECK_FALSE(configuration.kubelet.kube_reserved.empty());
}

TEST_CASE("policies that evictd can follow stay, and so does what is wrong with its own keys") {
  Configuration good;
  leave_out_impossible_allocation(good);
  CHECK_FALSE(good.no_allocation);

  Configuration bad;
  bad.agent.admission.devices.resize(2);  // one, twice
  REQUIRE_FALSE(check_admission(bad));
  leave_out_impossible_allocation(bad);
  CHECK_FALSE(bad.no_allocation);
  CHECK_FALSE(check_admission(bad));
}

}  // namespace evictd::app::enforcement_test
