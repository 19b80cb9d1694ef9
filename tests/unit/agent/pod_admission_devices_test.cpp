// Admissions of pods that want devices of plugins.
#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/admission_scene.hpp"
#include "agent/pod_admission.hpp"
#include "fixture/machines.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::pod_admission_devices_test {

using namespace admission_scene;
using fixture::pod;

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

TEST_CASE("what is written says which pods have yet to come") {
  Scene scene;
  scene.serve_devices();
  const auto admitted = scene.loop.clock.now();
  REQUIRE(scene.admit_with_gpus("x", "2").admitted());
  CHECK(scene.node.coming == admission::Coming{{"x", admitted + std::chrono::minutes(5)}});
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

TEST_CASE("what plugins say is kept up to a bound for all pods; beyond it a pod is rejected") {
  Scene scene;
  scene.serve_devices();
  scene.plugins.filling.assign(most_edits / 2, 'x');
  CHECK(scene.admit_with_gpus("x", "1").admitted());
  const auto answer = scene.admit_with_gpus("y", "1");
  CHECK(answer.reason() == "UnexpectedAdmissionError");
  CHECK(answer.message().starts_with("Allocate failed due to what device plugins say of the node's containers: 41"));
  CHECK_FALSE(scene.admission.allocations().contains("y"));
  CHECK(scene.node.saved.back() == scene.admission.allocations());
  scene.plugins.filling.clear();
  CHECK(scene.admit_with_gpus("y", "2").admitted());
}

TEST_CASE("a question alone asks no plugin") {
  Scene scene;
  scene.serve_devices();
  const auto answer = scene.admit({with_gpus(pod("x"), "1")}, false).front();
  CHECK(answer.admitted());
  CHECK(scene.plugins.calls.empty());
}

TEST_CASE("a plugin without preferences is asked for none") {
  Scene scene;
  scene.serve_devices();
  scene.plugins.has_wishes = false;
  CHECK(scene.admit_with_gpus("x", "2").admitted());
  CHECK(scene.plugins.calls == std::vector<std::string>{"allocate a b", "start a b"});
}

TEST_CASE("the reactor turns between questions, and of a client that has left nothing more is asked") {
  Scene scene;
  scene.serve_devices();
  std::vector<core::Container> containers;
  for (const char* name : {"first", "second", "third"})
    containers.push_back(fixture::wanting(fixture::container(name), gpu, "1"));
  const auto questions_until_others_run = [&](bool leaves) {
    scene.plugins.calls.clear();
    std::size_t questions = 0;
    const auto task = scene.begin(pod("x", containers));
    bool ended = false;
    boost::asio::co_spawn(scene.loop.reactor, task->prepare(scene.client),
                          [&](const std::exception_ptr&) { ended = true; });
    boost::asio::post(scene.loop.reactor, [&] {
      questions = scene.plugins.calls.size();
      if (leaves) scene.client.leave();
    });
    REQUIRE(test::run_until(scene.loop.reactor, [&] { return ended; }));
    return questions;
  };
  CHECK(questions_until_others_run(false) < 3);
  CHECK(scene.plugins.calls.size() == 3);
  CHECK(questions_until_others_run(true) < 3);
  CHECK(scene.plugins.calls.size() < 3);
}

TEST_CASE("whoever only asks about a pod that runs hears which devices it has, and not what its plugins gave") {
  Scene scene;
  scene.serve_devices();
  REQUIRE(scene.admit_with_gpus("x", "2").allocations(0).has_edits());
  const auto given = scene.admission.allocations();
  for (const auto& answer :
       {scene.admit({with_gpus(pod("x"), "2")}, false).front(), scene.resize(with_gpus(pod("x"), "2"), false)}) {
    CHECK(answer.admitted());
    REQUIRE(answer.allocations_size() == 1);
    CHECK(answer.allocations(0).devices(0).ids_size() == 2);
    CHECK_FALSE(answer.allocations(0).has_edits());
  }
  CHECK(scene.admission.allocations() == given);
}

TEST_CASE("a pod that runs and is asked about by its name has the devices that it has") {
  Scene scene;
  scene.add_devices();
  scene.node.now.node->allocatable = fixture::amounts({{"pods", "5"}});
  scene.run({"b"});
  REQUIRE(scene.admit_with_gpus("b", "1").allocations(0).devices(0).ids(0) == "a");
  auto named = with_gpus(pod("b"), "1");
  named.name_space = "shop";  // as the runtime lists it
  named.uid.clear();
  SUBCASE("it stays") {
    for (const bool reserve : {false, true}) {
      const auto answer = scene.admit({named}, reserve).front();
      REQUIRE(answer.admitted());
      CHECK(answer.pod().uid() == "b");
      CHECK(answer.allocations(0).devices(0).ids(0) == "a");
    }
    CHECK(scene.admission.allocations().size() == 1);
    CHECK(scene.admit_with_gpus("y", "2").admitted());
  }
  SUBCASE("it is on its way out: who is asked about comes in its place, and has others") {
    scene.displace_b();
    const auto answer = scene.admit({named}, true).front();
    REQUIRE(answer.admitted());
    CHECK(answer.allocations(0).devices(0).ids(0) == "b");
    scene.runtime.put(test::sandbox("s-c", "c", "c"), test::sandbox_json("/kubepods/besteffort/podc"));
    scene.list_until(2);
    CHECK(scene.admission.allocations().contains("b"));
    CHECK(scene.admission.allocations().contains("shop/b"));
    CHECK_FALSE(scene.admit_with_gpus("y", "2").admitted());
  }
}

TEST_CASE("devices that are being allocated are nobody else's, and a pod is not allocated twice at once") {
  Scene scene;
  scene.serve_devices();
  const auto task = scene.begin(with_gpus(pod("x"), "2"));
  scene.done(task->prepare(scene.client));
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

TEST_CASE("a call that ends before its answer leaves nothing reserved, for none of its pods") {
  Scene scene;
  scene.serve_devices();
  {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    asked->push_back({.pod = with_gpus(pod("x"), "2")});
    asked->push_back({.pod = with_gpus(pod("y"), "1")});
    const auto task = scene.admission.admit(asked, true);
    CHECK(scene.decide(*task).front().admitted());
    CHECK(scene.decide(*task).front().admitted());
    CHECK(scene.admission.allocations().size() == 2);
    scene.node.now.node->allocatable = fixture::amounts({{"pods", "2"}});
    CHECK(scene.admit({pod("z")}, false).front().reason() == "OutOfpods");
  }
  CHECK(scene.admission.allocations().empty());
  CHECK(scene.node.saved.back().empty());
  CHECK(scene.admit({pod("z"), with_gpus(pod("x"), "3")}, false).back().admitted());
}

TEST_CASE("what a pod had before, or was given by another call meanwhile, is not taken back") {
  Scene scene;
  scene.serve_devices();
  CHECK(scene.admit_with_gpus("x", "1").admitted());
  {
    const auto again = scene.begin(with_gpus(pod("x"), "1"));
    CHECK(scene.decide(*again).front().admitted());
    const auto first = scene.begin(with_gpus(pod("y"), "1"));
    CHECK(scene.decide(*first).front().admitted());
    CHECK(scene.admit_with_gpus("y", "1").admitted());
  }
  CHECK(scene.admission.allocations().contains("x"));
  CHECK(scene.admission.allocations().contains("y"));
  CHECK_FALSE(scene.admit_with_gpus("z", "2").admitted());
}

TEST_CASE("a call that is under way when evictd ends goes with the reactor") {
  Scene scene;
  scene.serve_devices();
  scene.plugins.is_held = true;
  auto asking = [](std::unique_ptr<api::AdmissionTask> task,
                   const api::Departure& client) -> boost::asio::awaitable<void> {
    co_await task->prepare(client);
    auto some = fixture::value_of(task->decide_some());
    co_await task->carry_out(some);
  };
  boost::asio::co_spawn(scene.loop.reactor, asking(scene.begin(with_gpus(pod("x"), "1")), scene.client),
                        boost::asio::detached);
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return scene.plugins.calls.size() == 2; }));
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

TEST_CASE("the runtime's client is told what the container is to be given that is made, and of no other") {
  Scene scene;
  scene.serve_devices();
  const auto asking = pod("x", {fixture::wanting(fixture::container("beside"), gpu, "1"),
                                fixture::wanting(fixture::container("main"), gpu, "1")});
  const auto edited = [](const v1::AdmitResponse& answer) {
    CHECK(answer.allocations_size() == 2);
    std::vector<std::string> containers;
    for (const auto& given : answer.allocations())
      if (given.has_edits()) containers.push_back(given.container());
    return containers;
  };
  CHECK(edited(scene.admit({asking}, true).front()) == std::vector<std::string>{"beside", "main"});
  auto requests = std::make_shared<std::vector<api::AdmissionRequest>>();
  requests->push_back({.pod = asking, .from_runtime = true});
  requests->front().container = "main";
  CHECK(edited(scene.answer(requests, true).front()) == std::vector<std::string>{"main"});
  CHECK(edited(scene.answer(requests, false).front()).empty());
  requests->front().container.clear();
  CHECK(edited(scene.answer(requests, true).front()).empty());
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

}  // namespace evictd::agent::pod_admission_devices_test
