#include "agent/pod_admission.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admission/chain.hpp"
#include "agent/fake_plugin_calls.hpp"
#include "agent/loop.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "events/event_log.hpp"
#include "fixture/machines.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::pod_admission_test {
namespace {

using namespace std::chrono_literals;
using fixture::pod;
using fixture::with_priority;

/// A node for one pod.
struct FakeNode final : AdmittingNode {
  [[nodiscard]] admission::NodeSnapshot snapshot() const override { return now; }
  void save(const admission::Allocations& allocations) override { saved.push_back(allocations); }

  admission::NodeSnapshot now{.node = admission::Node{.name = "n1", .allocatable = fixture::amounts({{"pods", "1"}})}};
  std::vector<admission::Allocations> saved{};
};

const std::string gpu = "example.com/gpu";

core::Pod with_gpus(core::Pod pod, std::string_view count) {
  pod.containers = {fixture::wanting(fixture::container("main"), gpu, count)};
  return pod;
}

/// Pods that ask for it, and the answers.
struct Scene {
  ~Scene() { loop.tracker.stop(); }

  void list_pods() {
    runtime.start();
    loop.runtime.watch(loop.lister);
    loop.tracker.start();
    REQUIRE(test::run_until(loop.reactor, [this] { return loop.tracker.listed(); }));
  }
  std::vector<v1::AdmitResponse> admit(std::vector<core::Pod> pods, bool reserve) {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    for (auto& pod : pods) asked->push_back({.pod = std::move(pod)});
    return answer(asked, reserve);
  }
  std::vector<v1::AdmitResponse> answer(const api::AdmissionRequestsPtr& asked, bool reserve) {
    const auto task = admission.admit(asked, reserve);
    std::vector<v1::AdmitResponse> answers;
    while (answers.size() < asked->size()) {
      auto some = decide(*task);
      REQUIRE_FALSE(some.empty());
      for (auto& one : some) answers.push_back(std::move(one));
    }
    return answers;
  }
  v1::AdmitResponse resize(core::Pod desired, bool reserve = false) {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    asked->push_back({.pod = std::move(desired), .resize = true});
    return answer(asked, reserve).front();
  }
  v1::AdmitResponse update(std::string container, pods::LinuxResources resources) {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    asked->push_back({.pod = {}, .from_runtime = true, .resize = true});
    asked->back().update = api::ContainerUpdate{.container_id = std::move(container), .resources = resources};
    return answer(asked, true).front();
  }
  /// As the API does it.
  std::vector<v1::AdmitResponse> decide(api::AdmissionTask& task) {
    if (!has_devices()) return fixture::value_of(task.decide_some());
    done(task.prepare());
    auto some = fixture::value_of(task.decide_some());
    done(task.carry_out(some));
    return some;
  }
  void done(boost::asio::awaitable<void> work) {
    bool ended = false;
    boost::asio::co_spawn(loop.reactor, std::move(work), [&](const std::exception_ptr&) { ended = true; });
    REQUIRE(test::run_until(loop.reactor, [&] { return ended; }));
  }
  std::unique_ptr<api::AdmissionTask> begin(core::Pod pod) {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    asked->push_back({.pod = std::move(pod)});
    return admission.admit(asked, true);
  }
  /// The node has the devices a, b and c of a plugin.
  void add_devices() {
    node.now.plugins.groups[gpu] = std::make_shared<const admission::DeviceGroup>(
        admission::DeviceGroup{.places = {{"a", {}}, {"b", {}}, {"c", {}}}, .healthy = {"a", "b", "c"}});
  }
  [[nodiscard]] bool has_devices() const { return !node.now.plugins.groups.empty(); }
  /// It has room for five pods, too.
  void serve_devices() {
    node.now.node->allocatable = fixture::amounts({{"pods", "5"}});
    add_devices();
    list_pods();
  }
  v1::AdmitResponse admit_with_gpus(const std::string& name, std::string_view count) {
    return admit({with_gpus(pod(name), count)}, true).front();
  }
  /// The runtime has these of the pods a and b, which the loop's evictor can stop.
  void run(const std::vector<std::string>& names, int oom_score_adj = 1000) {
    const std::string parent = oom_score_adj < 1000 ? "/kubepods/burstable/pod" : "/kubepods/besteffort/pod";
    for (const auto& name : names) {
      runtime.put(test::sandbox("s-" + name, name, name), test::sandbox_json(parent + name));
      runtime.put(test::container("c-" + name, "s-" + name, "main"), test::container_json(oom_score_adj));
    }
    list_pods();
  }
  /// Until the runtime's list has so many pods.
  void list_until(std::size_t pods) {
    loop.tracker.changed();
    REQUIRE(test::run_until(loop.reactor, [&] { return loop.tracker.pods()->size() == pods; }));
  }
  void end(const std::string& name) {
    loop.stopper.report(name, FakeStopper::killed());
    loop.stopper.report(name, FakeStopper::ended());
  }
  void displace_b() {
    loop.evictions.displace(std::make_shared<const core::Pod>(pod("b")), {core::Displacement::NodeShutdown, "why"},
                            30s);
  }
  int rejections() {
    int count = 0;
    const auto subscription = events.subscribe(0, [] {});
    while (const auto next = subscription->next())
      if (next->kind() == v1::Event::ADMISSION_REJECTED) ++count;
    return count;
  }

  test::FakeRuntime runtime;
  Loop loop{{}, core::Signal::MemoryAvailable, runtime.endpoint()};
  events::EventLog events{loop.reactor.get_executor()};
  Recorder recorder{events};
  FakeNode node;
  FakePluginCalls plugins;
  PodAdmission admission{{.reactor = loop.reactor.get_executor(),
                          .pods = loop.tracker,
                          .evictions = loop.evictions,
                          .catalog = loop.catalog,
                          .recorder = recorder,
                          .chain = admission::kubelet_chain().value(),
                          .node = node,
                          .clock = loop.clock,
                          .plugins = &plugins},
                         {}};
};

/// A reserved admission of one pod.
struct Asking {
  /// Nothing: it waits.
  std::optional<v1::AdmitResponse> decide() { return taken(fixture::value_of(task->decide_some())); }
  /// The same on a node with devices.
  std::optional<v1::AdmitResponse> decide(Scene& scene) { return taken(scene.decide(*task)); }

  std::optional<v1::AdmitResponse> taken(const std::vector<v1::AdmitResponse>& some) {
    if (!some.empty()) return some.front();
    task->when_room([this] { ++woken; });
    return std::nullopt;
  }

  std::unique_ptr<api::AdmissionTask> task;
  int woken = 0;
};

core::Pod vital(std::string name) { return with_priority(pod(std::move(name)), 2'000'000'000); }

core::Pod with_memory(core::Pod pod, const char* request) {
  pod.containers = {fixture::container("main", {{"memory", request}})};
  return pod;
}

constexpr int requests_3276_mib = 600;  // as an oom_score_adj, of 8 GiB

/// For ten pods and 8 GiB.
void make_roomy(Scene& scene) {
  scene.node.now.node->allocatable = fixture::amounts({{"pods", "10"}, {"memory", "8Gi"}});
}

}  // namespace

TEST_CASE("nothing can be said before the runtime has told its pods") {
  Scene scene;
  const auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
  asked->push_back({.pod = pod("a")});
  CHECK(fixture::error_of(scene.admission.admit(asked, false)->decide_some()).starts_with("nothing can be said yet"));
}

TEST_CASE("a reserved place is taken from then on; a question alone takes nothing") {
  Scene scene;
  scene.list_pods();
  CHECK(scene.admit({pod("a")}, false).front().admitted());
  CHECK(scene.admit({pod("b")}, true).front().admitted());
  CHECK_FALSE(scene.admit({pod("a")}, false).front().admitted());
  CHECK(scene.rejections() == 0);
  CHECK_FALSE(scene.admit({pod("a")}, true).front().admitted());
  CHECK(scene.rejections() == 1);
}

TEST_CASE("pods of one request are decided beside those before them") {
  Scene scene;
  scene.list_pods();
  const auto answers = scene.admit({pod("a"), pod("b")}, false);
  CHECK(answers[0].admitted());
  CHECK_FALSE(answers[1].admitted());
}

TEST_CASE("an answer names every handler, and those that were not asked") {
  Scene scene;
  scene.node.now.conditions = {core::NodeCondition::DiskPressure};
  scene.list_pods();
  const auto answer = scene.admit({pod("a")}, false).front();
  CHECK(answer.reason() == "Evicted");
  REQUIRE(answer.handlers_size() == 7);
  CHECK(answer.handlers(0).verdict() == "rejected");
  CHECK(answer.handlers(1).verdict() == "not asked");
}

TEST_CASE("a pod that is terminating counts until it has ended, whatever lists still say then") {
  Scene scene;
  scene.run({"b"});
  scene.displace_b();
  CHECK(scene.admit({pod("a")}, false).front().reason() == "OutOfpods");
  scene.loop.stopper.report("b", FakeStopper::killed());
  CHECK(scene.admit({pod("a")}, false).front().reason() == "OutOfpods");
  scene.loop.stopper.report("b", FakeStopper::ended());
  CHECK(scene.admit({pod("a")}, false).front().admitted());
}

TEST_CASE("a pod whose end was waited for too long, and that nobody killed, still counts") {
  Scene scene;
  scene.run({"b"});
  scene.displace_b();
  scene.loop.stopper.report("b", FakeStopper::ended(true));
  CHECK_FALSE(scene.admit({pod("a")}, false).front().admitted());
}

TEST_CASE("a critical pod is admitted once those that make room for it have ended, and has their place") {
  Scene scene;
  scene.run({"b"});
  CHECK_FALSE(scene.admit({pod("meek")}, true).front().admitted());
  Asking asking{scene.begin(vital("vital"))};
  CHECK_FALSE(asking.decide());
  CHECK(scene.loop.did("stop b"));
  CHECK_FALSE(scene.admit({pod("meek")}, false).front().admitted());
  scene.loop.stopper.report("b", FakeStopper::killed());
  CHECK(asking.woken == 0);
  scene.loop.stopper.report("b", FakeStopper::ended());
  CHECK(asking.woken == 1);
  const auto answer = asking.decide();
  REQUIRE(answer);
  CHECK(answer->admitted());
  REQUIRE(answer->preempted_size() == 1);
  CHECK(answer->preempted(0).uid() == "b");
  CHECK_FALSE(scene.admit({pod("meek")}, false).front().admitted());
}

TEST_CASE("a question alone about a critical pod says who would go, and waits for nothing") {
  Scene scene;
  scene.run({"b"});
  const auto answer = scene.admit({vital("vital")}, false).front();
  CHECK(answer.admitted());
  CHECK(answer.preempted_size() == 1);
  CHECK(scene.loop.stopper.begun.empty());
}

TEST_CASE("an evictd that evicts nobody lets a critical pod in at once, and says who would go") {
  Scene scene;
  scene.run({"b"});
  scene.loop.evictions.only_watch(true);
  Asking asking{scene.begin(vital("vital"))};
  CHECK_FALSE(asking.decide());
  CHECK(asking.woken == 1);
  const auto answer = asking.decide();
  REQUIRE(answer);
  CHECK(answer->admitted());
  CHECK(answer->preempted_size() == 1);
  CHECK(scene.loop.stopper.begun.empty());
}

TEST_CASE("a pod that does not end is waited for no longer than by a kubelet, which then admits, and counts on") {
  Scene scene;
  scene.run({"b"});
  Asking asking{scene.begin(vital("vital"))};
  CHECK_FALSE(asking.decide());
  scene.loop.clock.advance(44s);  // of 30 s and half of that
  CHECK(asking.woken == 0);
  scene.loop.clock.advance(2s);
  CHECK(asking.woken == 1);
  const auto answer = asking.decide();
  REQUIRE(answer);
  CHECK(answer->admitted());
  CHECK(answer->preempted_size() == 1);
  // With both there, a pod must go that may not.
  CHECK(scene.admit({vital("second")}, true).front().reason() == "UnexpectedAdmissionError");
  scene.end("b");
  CHECK(asking.woken == 1);
}

TEST_CASE("a pod that the evictor gives up is waited for no longer") {
  Scene scene;
  scene.run({"b"});
  Asking asking{scene.begin(vital("vital"))};
  CHECK_FALSE(asking.decide());
  scene.loop.stopper.report("b", FakeStopper::ended(true));
  CHECK(asking.woken == 1);
  const auto answer = asking.decide();
  REQUIRE(answer);
  CHECK(answer->admitted());
}

TEST_CASE("a pod that is not waited for any more gives its room up, and those that go for it go on") {
  Scene scene;
  scene.run({"b"});
  {
    Asking asking{scene.begin(vital("vital"))};
    CHECK_FALSE(asking.decide());
    CHECK_FALSE(scene.admit({pod("meek")}, false).front().admitted());
  }
  CHECK(scene.admit({pod("meek")}, false).front().admitted());
  Asking next{scene.begin(vital("next"))};
  CHECK_FALSE(next.decide());
  CHECK(scene.loop.stopper.begun.size() == 1);
  scene.end("b");
  CHECK(next.woken == 1);
  const auto answer = next.decide();
  REQUIRE(answer);
  CHECK(answer->admitted());
  CHECK(answer->preempted_size() == 0);  // not for this one
}

TEST_CASE("two critical pods that wait at once have victims of their own") {
  Scene scene;
  scene.node.now.node->allocatable = fixture::amounts({{"pods", "2"}});
  scene.run({"a", "b"});
  Asking first{scene.begin(vital("first"))};
  Asking second{scene.begin(vital("second"))};
  CHECK_FALSE(first.decide());
  CHECK_FALSE(second.decide());
  // There is nobody left for a third.
  CHECK(scene.admit({vital("third")}, true).front().reason() == "UnexpectedAdmissionError");
  const auto& begun = scene.loop.stopper.begun;
  REQUIRE(begun.size() == 2);
  const auto for_first = begun[0].uid;
  const auto for_second = begun[1].uid;
  REQUIRE(for_first != for_second);

  scene.end(for_second);
  CHECK(first.woken == 0);
  CHECK(second.woken == 1);
  const auto second_answer = second.decide();
  REQUIRE(second_answer);
  CHECK(second_answer->admitted());
  CHECK(second_answer->preempted(0).uid() == for_second);
  CHECK_FALSE(first.decide());
  scene.end(for_first);
  const auto first_answer = first.decide();
  REQUIRE(first_answer);
  CHECK(first_answer->admitted());
  CHECK(first_answer->preempted(0).uid() == for_first);
  CHECK(scene.loop.stopper.begun.size() == 2);
}

TEST_CASE("while room is made, others are admitted that fit beside all, and wait that fit only then") {
  Scene scene;
  scene.node.now.node->allocatable = fixture::amounts({{"pods", "10"}, {"memory", "8Gi"}});
  scene.run({"b"}, 200);  // requests 6.4 GiB
  Asking asking{scene.begin(with_memory(vital("vital"), "3Gi"))};
  CHECK_FALSE(asking.decide());
  CHECK(scene.admit({with_memory(pod("large"), "6Gi")}, true).front().reason() == "OutOfmemory");
  CHECK(scene.admit({with_memory(pod("small"), "1Gi")}, true).front().admitted());
  Asking patient{scene.begin(with_memory(pod("patient"), "3Gi"))};
  CHECK_FALSE(patient.decide());
  CHECK(scene.admit({with_memory(pod("late"), "3Gi")}, true).front().reason() == "OutOfmemory");
  scene.end("b");
  CHECK(asking.woken == 1);
  CHECK(patient.woken == 1);
  const auto answer = patient.decide();
  REQUIRE(answer);
  CHECK(answer->admitted());
  CHECK(answer->preempted_size() == 0);
  const auto vital_answer = asking.decide();
  REQUIRE(vital_answer);
  CHECK(vital_answer->admitted());
}

TEST_CASE("whatever has changed while a pod waited is asked about again") {
  Scene scene;
  scene.run({"b"});
  Asking asking{scene.begin(vital("vital"))};
  CHECK_FALSE(asking.decide());
  scene.node.now.shutting_down = true;
  scene.end("b");
  const auto answer = asking.decide();
  REQUIRE(answer);
  CHECK(answer->reason() == "NodeShutdown");
  CHECK(answer->preempted_size() == 1);
  CHECK(scene.rejections() == 1);
  scene.node.now.shutting_down = false;
  CHECK(scene.admit({pod("meek")}, false).front().admitted());
}

TEST_CASE(
    "a resize is judged beside the other pods: deferred where it does not fit now, infeasible where it never will") {
  Scene scene;
  make_roomy(scene);
  scene.run({"a", "b"}, requests_3276_mib);
  const auto admitted = scene.resize(with_memory(pod("a"), "4Gi"));
  CHECK(admitted.admitted());
  CHECK(admitted.resize() == v1::AdmitResponse::RESIZE_NOT_PENDING);
  REQUIRE(admitted.handlers_size() == 8);
  CHECK(admitted.handlers(0).handler() == "resize");
  CHECK(admitted.pod().uid() == "a");

  const auto deferred = scene.resize(with_memory(pod("a"), "5Gi"));
  CHECK_FALSE(deferred.admitted());
  CHECK(deferred.resize() == v1::AdmitResponse::RESIZE_DEFERRED);
  CHECK(deferred.reason() == "Deferred");
  CHECK(deferred.message().starts_with("Node didn't have enough resource: memory, requested: 5368709120, used: "));
  CHECK(deferred.handlers(4).handler() == "predicates");
  CHECK(deferred.handlers(4).verdict() == "rejected");

  const auto infeasible = scene.resize(with_memory(pod("a"), "9Gi"));
  CHECK(infeasible.resize() == v1::AdmitResponse::RESIZE_INFEASIBLE);
  CHECK(infeasible.reason() == "Infeasible");
  CHECK(infeasible.message() ==
        "Node didn't have enough capacity: memory, requested: 9663676416, capacity: 8589934592");
  CHECK(scene.rejections() == 0);
  CHECK_FALSE(scene.resize(with_memory(pod("a"), "5Gi"), true).admitted());
  CHECK(scene.rejections() == 1);
}

TEST_CASE("a resize has nobody go, whoever wants it") {
  Scene scene;
  make_roomy(scene);
  scene.run({"a", "b"}, requests_3276_mib);
  CHECK(scene.resize(with_memory(vital("a"), "5Gi"), true).reason() == "Deferred");
  CHECK(scene.loop.stopper.begun.empty());
}

TEST_CASE("a reserved resize counts until its pod is gone, though lists say nothing of it; a question takes nothing") {
  Scene scene;
  make_roomy(scene);
  scene.run({"a", "b"}, requests_3276_mib);
  const auto next = with_memory(pod("next"), "1Gi");
  auto nameless = with_memory(pod("a"), "4Gi");  // as in a file
  nameless.name_space = "shop";
  nameless.uid.clear();
  CHECK(scene.resize(nameless).pod().uid() == "a");
  CHECK(scene.admit({next}, false).front().admitted());
  CHECK(scene.resize(nameless, true).admitted());
  CHECK(scene.admit({next}, false).front().reason() == "OutOfmemory");
  // It is no neighbour of its own.
  CHECK(scene.resize(with_memory(pod("a"), "4500Mi")).admitted());

  scene.runtime.put(test::sandbox("s-c", "c", "c"), test::sandbox_json("/kubepods/podc"));
  scene.list_until(3);
  CHECK(scene.admit({next}, false).front().reason() == "OutOfmemory");
  scene.runtime.remove_container("c-a");
  scene.runtime.remove_sandbox("s-a");
  scene.list_until(2);
  CHECK(scene.admit({next}, false).front().admitted());
}

TEST_CASE("a reserved resize is forgotten once something else is told of what the pod requests") {
  Scene scene;
  make_roomy(scene);
  scene.run({"a", "b"}, requests_3276_mib);
  const auto next = with_memory(pod("next"), "2Gi");
  CHECK(scene.resize(with_memory(pod("a"), "4500Mi"), true).admitted());
  CHECK(scene.admit({next}, false).front().reason() == "OutOfmemory");
  scene.runtime.remove_container("c-a");
  scene.runtime.put(test::container("c-a2", "s-a", "main"), test::container_json(700));
  scene.runtime.put(test::sandbox("s-c", "c", "c"), test::sandbox_json("/kubepods/podc"));
  scene.list_until(3);
  CHECK(scene.admit({next}, false).front().admitted());
}

TEST_CASE("pods of one question are resized beside those before them, and one that is not stays as it was") {
  Scene scene;
  make_roomy(scene);
  scene.run({"a", "b"}, requests_3276_mib);
  auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
  asked->push_back({.pod = with_memory(pod("a"), "5Gi"), .resize = true});  // does not fit
  asked->push_back({.pod = with_memory(pod("a"), "4500Mi"), .resize = true});
  asked->push_back({.pod = with_memory(pod("b"), "4Gi"), .resize = true});
  asked->push_back({.pod = with_memory(pod("b"), "3500Mi"), .resize = true});
  const auto task = scene.admission.admit(asked, false);
  std::vector<bool> admitted;
  while (admitted.size() < asked->size()) {
    const auto some = fixture::value_of(task->decide_some());
    REQUIRE_FALSE(some.empty());
    for (const auto& answer : some) admitted.push_back(answer.admitted());
  }
  CHECK(admitted == std::vector<bool>{false, true, false, true});
}

TEST_CASE("a resize that fits only once others have gone for a critical pod is deferred, and waits for nobody") {
  Scene scene;
  make_roomy(scene);
  scene.run({"a", "b"}, requests_3276_mib);
  Asking asking{scene.begin(with_memory(vital("vital"), "3Gi"))};
  CHECK_FALSE(asking.decide());
  REQUIRE(scene.loop.stopper.begun.size() == 1);
  const std::string leaving = scene.loop.stopper.begun[0].uid;
  const auto staying = pod(leaving == "a" ? "b" : "a");
  CHECK(scene.resize(with_memory(staying, "4Gi"), true).admitted());
  CHECK(scene.resize(with_memory(staying, "5017Mi"), true).reason() == "Deferred");
  scene.end(leaving);
  CHECK(scene.resize(with_memory(staying, "5017Mi"), true).admitted());
  CHECK(scene.resize(with_memory(staying, "5200Mi"), true).reason() == "Deferred");  // the place of the one that waits
}

TEST_CASE("an update by which a pod grows is judged like a resize; one by which it does not passes unasked") {
  Scene scene;
  make_roomy(scene);
  scene.node.now.node->allocatable.merge(fixture::amounts({{"cpu", "2"}}));
  scene.run({"a", "b"}, requests_3276_mib);
  scene.node.now.conditions = {core::NodeCondition::DiskPressure};  // defers every question
  const auto deferred = scene.update("c-a", {.cpu_shares = 512});
  CHECK(deferred.resize() == v1::AdmitResponse::RESIZE_DEFERRED);
  CHECK(deferred.pod().uid() == "a");
  const auto unasked = scene.update("c-a", {.memory_limit = std::int64_t{9} << 30, .cpu_quota = 900'000});
  CHECK(unasked.admitted());  // limits alone, of a Burstable pod
  CHECK(unasked.handlers(0).verdict() == "not asked");
  CHECK(scene.update("unknown", {.cpu_shares = 512}).admitted());

  scene.node.now.conditions = {};
  CHECK(scene.update("c-a", {.cpu_shares = 1024}).admitted());
  CHECK(scene.update("c-b", {.cpu_shares = 1025}).reason() == "Deferred");
  CHECK(scene.update("c-b", {.cpu_shares = 4096}).reason() == "Infeasible");
  CHECK(scene.update("c-a", {.cpu_shares = 2048}).admitted());
  CHECK(scene.update("c-b", {.cpu_shares = 102}).reason() == "Deferred");
  // With less there is room again, although nobody was asked about that.
  CHECK(scene.update("c-a", {.cpu_shares = 1024}).admitted());
  CHECK(scene.update("c-b", {.cpu_shares = 1024}).admitted());
}

TEST_CASE("a resize of a pod that is not there is judged, and takes nothing") {
  Scene scene;
  make_roomy(scene);
  scene.list_pods();
  CHECK(scene.resize(with_memory(pod("a"), "6Gi"), true).admitted());
  CHECK(scene.admit({with_memory(pod("b"), "6Gi")}, false).front().admitted());
}

TEST_CASE("what plugins answer is in the admission's answer, and kept with what the pod was given") {
  Scene scene;
  scene.serve_devices();
  const auto answer = scene.admit_with_gpus("x", "2");
  REQUIRE(answer.admitted());
  CHECK(scene.plugins.calls == std::vector<std::string>{"prefer for main of a b c", "allocate a b", "start a b"});
  REQUIRE(answer.allocations_size() == 1);
  CHECK(answer.allocations(0).edits().environment().at(gpu) == " a b");
  REQUIRE_FALSE(scene.node.saved.empty());
  CHECK(scene.node.saved.back().at("x").at("main").edits == admission::DeviceEdits{.environment = {{gpu, " a b"}}});

  // Asked about once more it has the same, and the plugin is only told that it starts.
  scene.plugins.calls.clear();
  CHECK(scene.admit_with_gpus("x", "2").allocations(0).edits().environment().at(gpu) == " a b");
  CHECK(scene.plugins.calls == std::vector<std::string>{"start a b"});
}

TEST_CASE("a plugin gives those that it prefers") {
  Scene scene;
  scene.serve_devices();
  scene.plugins.preferred = {"b", "c"};
  CHECK(scene.admit_with_gpus("x", "2").allocations(0).devices(0).ids(0) == "b");
  CHECK(scene.admit_with_gpus("y", "1").allocations(0).devices(0).ids(0) == "a");
}

TEST_CASE("where a plugin fails the pod is rejected in the kubelet's words, and its devices are free again") {
  Scene scene;
  scene.serve_devices();
  for (const std::string& call : {std::string("prefer"), std::string("allocate"), std::string("start")}) {
    scene.plugins.failing = call;
    const auto answer = scene.admit_with_gpus("x", "2");
    CHECK_FALSE(answer.admitted());
    CHECK(answer.allocations().empty());
    CHECK(answer.handlers(2).verdict() == "rejected");
    CHECK(answer.handlers(3).verdict() == "not asked");
    CHECK(answer.reason() == (call == "start" ? "CreateContainerConfigError" : "UnexpectedAdmissionError"));
    if (call == "allocate") CHECK(answer.message() == "Allocate failed due to no, which is unexpected");
    CHECK(scene.admission.allocations().empty());
  }
  CHECK(scene.rejections() == 3);
  scene.plugins.failing.clear();
  CHECK(scene.admit_with_gpus("y", "3").admitted());
}

TEST_CASE("a question alone asks no plugin") {
  Scene scene;
  scene.serve_devices();
  const auto answer = scene.admit({with_gpus(pod("x"), "1")}, false).front();
  CHECK(answer.admitted());
  CHECK(scene.plugins.calls.empty());
}

TEST_CASE("devices that are being allocated are nobody else's, and a pod is not allocated twice at once") {
  Scene scene;
  scene.serve_devices();
  const auto task = scene.begin(with_gpus(pod("x"), "2"));
  scene.done(task->prepare());
  auto answers = fixture::value_of(task->decide_some());
  scene.plugins.is_held = true;
  bool ended = false;
  boost::asio::co_spawn(scene.loop.reactor, task->carry_out(answers), [&](const std::exception_ptr&) { ended = true; });
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return scene.plugins.calls.back() == "allocate a b"; }));

  CHECK_FALSE(scene.admit_with_gpus("x", "2").admitted());
  CHECK_FALSE(scene.admit_with_gpus("y", "2").admitted());
  CHECK_FALSE(ended);
  scene.plugins.is_held = false;
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return ended; }));
  CHECK(answers.front().admitted());
  CHECK(scene.admission.allocations().contains("x"));
  CHECK(scene.admit_with_gpus("y", "1").admitted());
}

TEST_CASE("a pod for which others make room has its devices meanwhile, and plugins allocate them once there is room") {
  Scene scene;
  scene.add_devices();
  scene.run({"b"});
  scene.plugins.preferred = {"b", "c"};
  Asking asking{scene.begin(with_gpus(vital("vital"), "2"))};
  CHECK_FALSE(asking.decide(scene));
  CHECK(scene.plugins.calls == std::vector<std::string>{"prefer for main of a b c"});
  CHECK(scene.admission.allocations().empty());
  CHECK(scene.admit({with_gpus(pod("meek"), "2")}, false).front().reason() == "UnexpectedAdmissionError");
  CHECK(scene.admit({with_gpus(pod("meek"), "1")}, false).front().reason() == "OutOfpods");
  CHECK_FALSE(asking.decide(scene));
  CHECK(scene.plugins.calls.size() == 1);  // nothing is asked before there is room

  scene.end("b");
  CHECK(asking.woken == 1);
  const auto answer = asking.decide(scene);
  REQUIRE(answer);
  CHECK(answer->admitted());
  CHECK(answer->preempted_size() == 1);
  CHECK(scene.plugins.calls ==
        std::vector<std::string>{"prefer for main of a b c", "prefer for main of a b c", "allocate b c", "start b c"});
  CHECK(answer->allocations(0).edits().environment().at(gpu) == " b c");
}

TEST_CASE("where a plugin fails once room was made, the answer says who went all the same") {
  Scene scene;
  scene.add_devices();
  scene.run({"b"});
  Asking asking{scene.begin(with_gpus(vital("vital"), "2"))};
  CHECK_FALSE(asking.decide(scene));
  scene.end("b");
  scene.plugins.failing = "allocate";
  const auto answer = asking.decide(scene);
  REQUIRE(answer);
  CHECK(answer->reason() == "UnexpectedAdmissionError");
  REQUIRE(answer->preempted_size() == 1);
  CHECK(answer->preempted(0).uid() == "b");
  CHECK(scene.admission.allocations().empty());
  CHECK(scene.admit({pod("meek")}, false).front().admitted());
}

TEST_CASE("of a sandbox nothing starts; of a container it alone does") {
  Scene scene;
  scene.serve_devices();
  const auto asking = pod("x", {fixture::wanting(fixture::container("main"), gpu, "1"),
                                fixture::wanting(fixture::container("beside"), gpu, "1")});
  // As if it were the runtime's client that tells all of it, as an annotation can.
  auto requests = std::make_shared<std::vector<api::AdmissionRequest>>();
  requests->push_back({.pod = asking, .from_runtime = true});
  scene.admit({asking}, true);
  scene.plugins.calls.clear();
  const auto given = scene.admission.allocations();
  REQUIRE(given.contains("x"));
  scene.answer(requests, true);
  CHECK(scene.plugins.calls.empty());
  requests->front().container = "beside";
  scene.answer(requests, true);
  CHECK(scene.plugins.calls.size() == 1);
}

TEST_CASE("a resize asks no plugin: the pod keeps its devices, and is told what it has") {
  Scene scene;
  scene.serve_devices();
  // The number of devices is what the plugin says, whatever a kubelet that is gone has left in the node's object.
  scene.node.now.node->allocatable = fixture::amounts({{"pods", "5"}, {"memory", "8Gi"}, {"example.com/gpu", "0"}});
  const auto with_three = [](const char* memory) {
    return pod("x", {fixture::wanting(fixture::container("main", {{"memory", memory}}), gpu, "3")});
  };
  REQUIRE(scene.admit({with_three("1Gi")}, true).front().admitted());
  scene.plugins.calls.clear();
  const auto given = scene.admission.allocations();

  const auto answer = scene.resize(with_three("2Gi"), true);
  CHECK(answer.admitted());
  REQUIRE(answer.allocations_size() == 1);
  CHECK(answer.allocations(0).edits().environment().at(gpu) == " a b c");
  CHECK(scene.plugins.calls.empty());
  CHECK(scene.admission.allocations() == given);
}

}  // namespace evictd::agent::pod_admission_test
