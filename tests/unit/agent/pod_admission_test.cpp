#include "agent/pod_admission.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/admission_scene.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::pod_admission_test {
namespace {

using namespace std::chrono_literals;
using namespace admission_scene;
using fixture::pod;

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

TEST_CASE("a listed pod of which nobody has a spec holds the node's ports that it was started with") {
  Scene scene;
  scene.make_roomy();
  scene.runtime.put(test::sandbox("s-a", "a", "a"),
                    R"({"config":{"port_mappings":[{"container_port":80,"host_port":8080}]}})");
  scene.list_pods();
  auto asking = pod("b");
  asking.containers = {{.name = "main", .host_ports = {{.port = 8080}}}};
  CHECK(scene.admit({asking}, false).front().reason() == "NodePorts");
  asking.containers[0].host_ports[0].port = 8081;
  CHECK(scene.admit({asking}, false).front().admitted());
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

TEST_CASE("a pod that was admitted and has not come yet has its room until it has come and ended") {
  Scene scene;
  scene.list_pods();
  CHECK(scene.admit({pod("late")}, true).front().admitted());
  Asking asking{scene.begin(vital("vital"))};
  CHECK_FALSE(asking.decide());
  CHECK(asking.woken == 0);
  CHECK(scene.loop.stopper.begun.empty());
  scene.loop.running.pods["late"] = runtime_pod(pod("late"));
  scene.runtime.put(test::sandbox("s-late", "late", "late"), test::sandbox_json("/kubepods/besteffort/podlate"));
  SUBCASE("in time") {
    scene.list_until(1);
    CHECK(asking.woken == 0);
  }
  SUBCASE("later than it is waited for") {
    scene.loop.clock.advance(46s);
    CHECK(asking.woken == 1);
    CHECK(asking.decide()->admitted());
    scene.list_until(1);
  }
  REQUIRE(scene.loop.stopper.begun.size() == 1);
  CHECK(scene.loop.stopper.begun.front().uid == "late");
  scene.end("late");
  CHECK(asking.woken == 1);
}

TEST_CASE("a pod that is preempted while its own admission is under way is not waited for, and ends if it comes") {
  Scene scene;
  scene.list_pods();
  Asking late{scene.begin(pod("late"))};
  CHECK(late.decide()->admitted());
  Asking asking{scene.begin(vital("vital"))};
  CHECK_FALSE(asking.decide());
  bool comes = false;
  SUBCASE("it does not come after all") { late.task.reset(); }  // before the answer was told
  SUBCASE("it comes") {
    late.task->keep();
    comes = true;
  }
  CHECK(asking.woken == 1);
  CHECK(asking.decide()->admitted());
  CHECK(scene.loop.stopper.begun.empty());
  scene.loop.running.pods["late"] = runtime_pod(pod("late"));
  scene.runtime.put(test::sandbox("s-late", "late", "late"), test::sandbox_json("/kubepods/besteffort/podlate"));
  scene.list_until(1);
  CHECK(scene.loop.did("stop late") == comes);
}

TEST_CASE("a pod that was told of and whose container is asked about anew is waited for") {
  Scene scene;
  scene.list_pods();
  CHECK(scene.admit({pod("late")}, true).front().admitted());
  Asking again{scene.begin(pod("late"))};
  CHECK(again.decide()->admitted());
  Asking asking{scene.begin(vital("vital"))};
  CHECK_FALSE(asking.decide());
  CHECK_FALSE(asking.decide());
  CHECK(asking.woken == 0);
}

TEST_CASE("a preempted pod that is admitted again before it has come may run") {
  Scene scene;
  scene.list_pods();
  CHECK(scene.admit({pod("late")}, true).front().admitted());
  {
    Asking asking{scene.begin(vital("vital"))};
    CHECK_FALSE(asking.decide());
  }
  CHECK(scene.admit({pod("late")}, true).front().admitted());
  scene.loop.running.pods["late"] = runtime_pod(pod("late"));
  scene.runtime.put(test::sandbox("s-late", "late", "late"), test::sandbox_json("/kubepods/besteffort/podlate"));
  scene.list_until(1);
  CHECK(scene.loop.stopper.begun.empty());
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
  scene.make_roomy();
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

TEST_CASE("a container that is made anew in a pod that runs is only given what it has, whatever the node has become") {
  Scene scene;
  scene.run({"a", "b"});  // one more than there is room for
  scene.node.now.conditions = {core::NodeCondition::DiskPressure};
  const auto answer = scene.make_container(pod("b"), "main");
  CHECK(answer.admitted());
  CHECK(answer.preempted_size() == 0);
  REQUIRE(answer.handlers_size() == 1);
  CHECK(answer.handlers(0).handler() == "resources");
  // As a pod's first container of a name, and its sandbox.
  CHECK(scene.make_container(pod("b"), "sidecar").reason() == "Evicted");
  CHECK(scene.make_container(pod("b"), "").reason() == "Evicted");
  CHECK(scene.make_container(pod("new"), "main").reason() == "Evicted");
  // Nothing comes back to life that has to go.
  scene.displace_b();
  CHECK(scene.make_container(pod("b"), "main").reason() == "Evicted");
  scene.end("b");
  CHECK(scene.make_container(pod("b"), "main").reason() == "Evicted");
}

TEST_CASE("a critical pod's container that is made anew has nobody go for room that the pod has already") {
  Scene scene;
  scene.run({"a", "b"});
  auto critical = vital("a");
  critical.name_space = "kube-system";  // whose pods may say so
  auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
  asked->push_back({.pod = std::move(critical), .from_runtime = true, .container = "main"});
  Asking asking{scene.admission.admit(asked, true)};
  const auto answer = asking.decide();
  CHECK(scene.loop.stopper.begun.empty());
  REQUIRE(answer);
  CHECK(answer->admitted());
}

}  // namespace evictd::agent::pod_admission_test
