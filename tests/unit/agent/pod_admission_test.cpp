#include "agent/pod_admission.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>

#include "admission/chain.hpp"
#include "agent/loop.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "events/event_log.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::pod_admission_test {
namespace {

using namespace std::chrono_literals;
using fixture::pod;
using fixture::with_priority;

/// A node for one pod.
struct FakeNode final : AdmittingNode {
  [[nodiscard]] admission::NodeSnapshot snapshot() const override { return now; }
  void save(const admission::Allocations&) override {}

  admission::NodeSnapshot now{.node = admission::Node{.name = "n1", .allocatable = fixture::amounts({{"pods", "1"}})}};
};

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
    const auto task = admission.admit(asked, reserve);
    std::vector<v1::AdmitResponse> answers;
    while (answers.size() < asked->size())
      for (auto& answer : fixture::value_of(task->decide_some())) answers.push_back(std::move(answer));
    return answers;
  }
  /// The runtime has the pod b, which the loop's evictor can stop.
  void run_b() {
    runtime.put(test::sandbox("s-b", "b", "b"), test::sandbox_json("/kubepods/podb"));
    runtime.put(test::container("c-b", "s-b", "main"), test::container_json(1000));
    list_pods();
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
  PodAdmission admission{{.pods = loop.tracker,
                          .evictions = loop.evictions,
                          .catalog = loop.catalog,
                          .recorder = recorder,
                          .chain = admission::kubelet_chain().value(),
                          .node = node},
                         {}};
};

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
  scene.run_b();
  scene.displace_b();
  CHECK(scene.admit({pod("a")}, false).front().reason() == "OutOfpods");
  scene.loop.stopper.report("b", FakeStopper::killed());
  CHECK(scene.admit({pod("a")}, false).front().reason() == "OutOfpods");
  scene.loop.stopper.report("b", FakeStopper::ended());
  CHECK(scene.admit({pod("a")}, false).front().admitted());
}

TEST_CASE("a pod whose end was waited for too long, and that nobody killed, still counts") {
  Scene scene;
  scene.run_b();
  scene.displace_b();
  scene.loop.stopper.report("b", FakeStopper::ended(true));
  CHECK_FALSE(scene.admit({pod("a")}, false).front().admitted());
}

TEST_CASE("whoever makes room for a critical pod is being evicted when the answer is there, and counts no more") {
  Scene scene;
  scene.run_b();
  CHECK_FALSE(scene.admit({pod("meek")}, true).front().admitted());
  const auto answer = scene.admit({with_priority(pod("vital"), 2'000'000'000)}, true).front();
  CHECK(answer.admitted());
  REQUIRE(answer.preempted_size() == 1);
  CHECK(answer.preempted(0).uid() == "b");
  CHECK(scene.loop.did("stop b"));
  CHECK(scene.loop.records.contains("b"));
}

}  // namespace evictd::agent::pod_admission_test
