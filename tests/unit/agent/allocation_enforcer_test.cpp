#include "agent/allocation_enforcer.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admission/chain.hpp"
#include "agent/loop.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "events/event_log.hpp"
#include "fixture/captured_log.hpp"
#include "fixture/machines.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::allocation_enforcer_test {
namespace {

using namespace std::chrono_literals;
using fixture::amounts;
using fixture::guaranteed;
using fixture::pod;
using Lines = std::vector<std::string>;

/// The CPUs 0 and 1, of which the first is nobody's own.
admission::AllocationSettings two_cpus() {
  return {.cpu_policy = "static",
          .topology = fixture::value_of(admission::make_topology({.cores_per_numa_node = 2})),
          .reserved_cpus = {0}};
}

/// What the container "main" of the pod was given.
admission::Allocations given(const std::string& uid, admission::ContainerAllocation allocation) {
  return {{uid, {{"main", std::move(allocation)}}}};
}

struct FakeNode final : AdmittingNode {
  [[nodiscard]] admission::NodeSnapshot snapshot() const override {
    return {.node =
                core::Node{.name = "n1", .allocatable = amounts({{"pods", "110"}, {"cpu", "2"}, {"memory", "8Gi"}})}};
  }
  void save(const admission::Allocations&, const admission::Coming&, Written) override { saved(); }

  std::function<void()> saved = [] {};
};

struct FakeLookout final : node::KubeletLookout {
  boost::asio::awaitable<std::optional<bool>> kubelet_runs(core::Instant) override {
    ++asked;
    co_return runs;
  }

  std::optional<bool> runs = false;
  int asked = 0;
};

struct Options {
  admission::Allocations kept{};
  admission::AllocationSettings settings = two_cpus();
  cri::Deadline deadline = test::patience;
  node::KubeletLookout* kubelet = nullptr;
};

/// A runtime with pods of one container each, "main", and the enforcer that confines them.
struct Scene final : private PodListener {
  explicit Scene(Options with) : options{std::move(with)} {
    node.saved = [this] { enforcer.look(); };
  }
  ~Scene() override {
    enforcer.stop();
    loop.tracker.stop();
  }

  void run(const std::string& name, runtime::v1::ContainerState state = runtime::v1::CONTAINER_RUNNING) {
    runtime.put(test::sandbox("s-" + name, name, name), test::sandbox_json("/kubepods/pod" + name));
    runtime.put(test::container("c-" + name, "s-" + name, "main", state), test::container_json(1000));
  }
  void remove(const std::string& name) {
    runtime.remove_sandbox("s-" + name);
    runtime.remove_container("c-" + name);
  }
  void start() {
    runtime.start();
    enforcer.start();
    loop.tracker.tell(*this);
    loop.runtime.watch(loop.lister);
    loop.tracker.start();
    REQUIRE(test::run_until(loop.reactor, [this] { return loop.tracker.listed(); }));
  }
  void list() {
    const auto before = lists;
    loop.tracker.list_for_pass();
    REQUIRE(test::run_until(loop.reactor, [&] { return lists > before; }));
  }
  void pods_changed(const core::PodList&) override { ++lists; }

  /// Whether it is these that are written in the end, since the start. Those of one batch come in any order.
  bool wrote(Lines expected) {
    std::ranges::sort(expected);
    return test::run_until(loop.reactor, [&] {
      auto lines = runtime.cpusets();
      std::ranges::sort(lines);
      return lines == expected;
    });
  }
  [[nodiscard]] int calls() const { return runtime.calls("UpdateContainerResources"); }
  v1::AdmitResponse admit(core::Pod asked) {
    const auto requests = std::make_shared<std::vector<api::AdmissionRequest>>();
    requests->push_back({.pod = std::move(asked)});
    const auto task = admission.admit(requests, true);
    auto answer = fixture::value_of(task->decide_some()).front();
    task->keep();
    return answer;
  }

  Options options;
  test::FakeRuntime runtime;
  Loop loop{{}, core::Signal::MemoryAvailable, runtime.endpoint()};
  events::EventLog events{loop.reactor.get_executor()};
  Recorder recorder{events};
  FakeNode node;
  PodAdmission admission{{.reactor = loop.reactor.get_executor(),
                          .pods = loop.tracker,
                          .evictions = loop.evictions,
                          .catalog = loop.catalog,
                          .recorder = recorder,
                          .chain = fixture::value_of(admission::kubelet_chain({.allocation = options.settings})),
                          .node = node,
                          .clock = loop.clock},
                         options.kept};
  admission::ResourceAllocator allocator = fixture::value_of(admission::ResourceAllocator::make(options.settings));
  cri::Client client{loop.reactor.get_executor(), runtime.endpoint(), options.deadline};
  AllocationEnforcer enforcer{loop.reactor.get_executor(),
                              {.runtime = client,
                               .pods = loop.listed,
                               .tracker = loop.tracker,
                               .admission = admission,
                               .allocator = allocator,
                               .clock = loop.clock,
                               .kubelet = options.kubelet}};
  int lists = 0;
};

std::size_t warnings(const fixture::CapturedLog& log) {
  return static_cast<std::size_t>(std::ranges::count_if(
      log.lines(), [](const std::string& line) { return line.find(" is not confined to ") != std::string::npos; }));
}

}  // namespace

TEST_CASE("after a start everybody is confined once: to CPUs of its own, or else to those that are left") {
  Scene scene{{.kept = given("pinned", {.cpus = {1}})}};
  for (const auto* name : {"pinned", "unknown", "other"}) scene.run(name);
  scene.start();
  CHECK(scene.wrote({"c-pinned cpus 1", "c-unknown cpus 0", "c-other cpus 0"}));

  // What is listed again is not written again; what has come is.
  scene.run("late");
  scene.list();
  CHECK(scene.wrote({"c-pinned cpus 1", "c-unknown cpus 0", "c-other cpus 0", "c-late cpus 0"}));
}

TEST_CASE("a container is confined once it runs") {
  Scene scene{{}};
  scene.run("created", runtime::v1::CONTAINER_CREATED);
  scene.run("over", runtime::v1::CONTAINER_EXITED);
  scene.run("web");
  scene.start();
  CHECK(scene.wrote({"c-web cpus 0-1"}));
  scene.run("created");
  scene.list();
  CHECK(scene.wrote({"c-web cpus 0-1", "c-created cpus 0-1"}));
}

TEST_CASE("a container that is about to start is looked for again, where the runtime does not tell of starts") {
  Scene scene{{}};
  scene.start();
  // Without that there are ten lists in a minute, and those that are asked for here.
  int created = 0;
  CHECK(test::run_until(scene.loop.reactor, [&] {
    if (scene.runtime.calls("ListPodSandbox") >= 4 * created) {
      scene.run(fmt::format("p{}", created++), runtime::v1::CONTAINER_CREATED);
      scene.loop.tracker.list_for_pass();
    }
    return created == 12;
  }));
  CHECK(scene.calls() == 0);
}

TEST_CASE("an admission takes its CPUs from all others at once, and they have them back when its pod is gone") {
  Scene scene{{}};
  scene.run("web");
  scene.start();
  REQUIRE(scene.wrote({"c-web cpus 0-1"}));
  const auto answer = scene.admit(pod("pinned", {guaranteed("main", "1", "64Mi")}));
  REQUIRE_MESSAGE(answer.admitted(), answer.message());
  CHECK(scene.wrote({"c-web cpus 0-1", "c-web cpus 0"}));
  scene.run("pinned");
  scene.list();
  CHECK(scene.wrote({"c-web cpus 0-1", "c-web cpus 0", "c-pinned cpus 1"}));
  scene.remove("pinned");
  scene.list();
  CHECK(scene.wrote({"c-web cpus 0-1", "c-web cpus 0", "c-pinned cpus 1", "c-web cpus 0-1"}));
}

TEST_CASE("a container that is started anew is confined anew") {
  Scene scene{{.kept = given("pinned", {.cpus = {1}})}};
  scene.run("pinned");
  scene.start();
  REQUIRE(scene.wrote({"c-pinned cpus 1"}));
  scene.runtime.remove_container("c-pinned");
  scene.runtime.put(test::container("c-second", "s-pinned", "main"), test::container_json(1000));
  scene.list();
  CHECK(scene.wrote({"c-pinned cpus 1", "c-second cpus 1"}));
}

TEST_CASE("memory that lies on some NUMA nodes is written with the CPUs, and by itself where CPUs are nobody's own") {
  auto settings = fixture::all_static("none");
  const auto kept = given("pinned", {.cpus = {1},
                                     .memory = {{.numa_nodes = {0}, .type = "memory", .bytes = 1 << 20},
                                                {.numa_nodes = {0, 1}, .type = "hugepages-2Mi", .bytes = 2 << 20}}});
  SUBCASE("both") {
    Scene scene{{.kept = kept, .settings = settings}};
    for (const auto* name : {"pinned", "web"}) scene.run(name);
    scene.start();
    CHECK(scene.wrote({"c-pinned cpus 1 mems 0-1", "c-web cpus 0,2-15"}));
  }
  SUBCASE("memory alone") {
    settings.cpu_policy = "none";
    auto without_cpus = kept;
    without_cpus["pinned"]["main"].cpus.clear();
    Scene scene{{.kept = without_cpus, .settings = settings}};
    for (const auto* name : {"pinned", "web"}) scene.run(name);
    scene.start();
    CHECK(scene.wrote({"c-pinned mems 0-1"}));
    CHECK(scene.calls() == 1);
  }
}

TEST_CASE("what the runtime refuses is told once for each container, and tried again every ten seconds alone") {
  fixture::CapturedLog log;
  Scene scene{{}};
  scene.runtime.fail("UpdateContainerResources", 13);
  scene.run("web");
  scene.start();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return warnings(log) == 1; }));
  CHECK(scene.calls() == 1);
  // Others are not held up, and that it is looked at again is no reason to try it again.
  scene.run("db");
  scene.list();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return warnings(log) == 2; }));
  CHECK(scene.calls() == 2);
  scene.loop.clock.advance(AllocationEnforcer::reconcile_period);
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return scene.calls() == 4; }));
  scene.runtime.recover("UpdateContainerResources");
  scene.run("late");
  scene.list();
  REQUIRE(scene.wrote({"c-late cpus 0-1"}));
  scene.loop.clock.advance(AllocationEnforcer::reconcile_period);
  CHECK(scene.wrote({"c-late cpus 0-1", "c-web cpus 0-1", "c-db cpus 0-1"}));
  CHECK(scene.calls() == 7);
  CHECK(warnings(log) == 2);
}

TEST_CASE("a runtime that answers nothing gets four calls every ten seconds, those first that it did not have yet") {
  fixture::CapturedLog log;
  Scene scene{{.deadline = 500ms}};
  scene.runtime.hang("UpdateContainerResources");
  Lines expected;
  for (int i = 0; i < 7; ++i) {
    scene.run(fmt::format("p{}", i));
    expected.push_back(fmt::format("c-p{} cpus 0-1", i));
  }
  scene.start();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return warnings(log) == 4; }));
  scene.list();
  scene.loop.clock.settle();
  CHECK(scene.calls() <= 4);
  scene.loop.clock.advance(AllocationEnforcer::reconcile_period);
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return warnings(log) == 7; }));
  CHECK(scene.calls() <= 8);
  scene.runtime.recover("UpdateContainerResources");
  CHECK(test::run_until(scene.loop.reactor, [&] {
    scene.loop.clock.advance(AllocationEnforcer::reconcile_period);
    auto lines = scene.runtime.cpusets();
    std::ranges::sort(lines);
    return std::ranges::includes(lines, expected);
  }));
}

TEST_CASE("where a kubelet runs nothing is written, not even once it has gone") {
  FakeLookout lookout;
  lookout.runs = true;
  Scene scene{{.kubelet = &lookout}};
  scene.run("web");
  scene.start();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return lookout.asked == 1; }));
  lookout.runs = false;
  scene.run("db");
  scene.list();
  scene.loop.clock.advance(AllocationEnforcer::reconcile_period);
  scene.loop.clock.settle();
  CHECK(lookout.asked == 1);
  CHECK(scene.calls() == 0);
}

TEST_CASE("while it cannot be told whether a kubelet runs nothing is written, and that is asked every ten seconds") {
  FakeLookout lookout;
  lookout.runs = std::nullopt;
  Scene scene{{.kubelet = &lookout}};
  scene.run("web");
  scene.start();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return lookout.asked == 1; }));
  scene.list();
  scene.loop.clock.settle();
  CHECK(lookout.asked == 1);
  lookout.runs = false;
  scene.loop.clock.advance(AllocationEnforcer::reconcile_period);
  CHECK(scene.wrote({"c-web cpus 0-1"}));
  // Where nothing is to be written nobody looks for one.
  CHECK(lookout.asked == 2);
  scene.list();
  scene.loop.clock.settle();
  CHECK(lookout.asked == 2);
}

TEST_CASE("while the runtime is away nothing fails, and all is written when it is back") {
  fixture::CapturedLog log;
  Scene scene{{}};
  scene.run("web");
  scene.runtime.fail("UpdateContainerResources", 14);
  scene.start();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return scene.calls() == 1; }));
  scene.runtime.recover("UpdateContainerResources");
  CHECK(test::run_until(scene.loop.reactor, [&] {
    scene.loop.clock.advance(AllocationEnforcer::reconcile_period);
    return scene.runtime.cpusets() == Lines{"c-web cpus 0-1"};
  }));
  CHECK(warnings(log) == 0);
}

}  // namespace evictd::agent::allocation_enforcer_test
