// Questions about resizes in place.
#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/admission_scene.hpp"
#include "agent/pod_admission.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::pod_admission_resize_test {

using namespace admission_scene;
using fixture::pod;

TEST_CASE(
    "a resize is judged beside the other pods: deferred where it does not fit now, infeasible where it never will") {
  Scene scene;
  scene.make_roomy();
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
  scene.make_roomy();
  scene.run({"a", "b"}, requests_3276_mib);
  CHECK(scene.resize(with_memory(vital("a"), "5Gi"), true).reason() == "Deferred");
  CHECK(scene.loop.stopper.begun.empty());
}

TEST_CASE("a reserved resize counts until its pod is gone, though lists say nothing of it; a question takes nothing") {
  Scene scene;
  scene.make_roomy();
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
  scene.make_roomy();
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
  scene.make_roomy();
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
  scene.make_roomy();
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
  scene.make_roomy();
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

TEST_CASE("an update that the runtime refuses takes nothing") {
  Scene scene;
  scene.make_roomy();
  scene.node.now.node->allocatable.merge(fixture::amounts({{"cpu", "2"}}));
  scene.run({"a", "b"}, requests_3276_mib);
  const auto refuse = [&](pods::LinuxResources resources, bool reserve) {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    asked->push_back({.pod = {}, .from_runtime = true, .resize = true});
    asked->back().update = api::ContainerUpdate{.container_id = "c-a", .resources = resources};
    asked->back().refused = true;
    return scene.answer(asked, reserve).front();
  };
  CHECK(scene.update("c-a", {.cpu_shares = 1024}).admitted());
  CHECK(scene.update("c-a", {.cpu_shares = 2048}).admitted());
  CHECK(scene.update("c-b", {.cpu_shares = 1024}).reason() == "Deferred");
  CHECK(refuse({.cpu_shares = 2048}, false).admitted());
  CHECK(scene.update("c-b", {.cpu_shares = 1024}).reason() == "Deferred");
  CHECK(refuse({.cpu_shares = 2048}, true).admitted());
  CHECK(scene.update("c-b", {.cpu_shares = 1025}).reason() == "Deferred");
  CHECK(scene.update("c-b", {.cpu_shares = 1024}).admitted());
}

TEST_CASE("a resize of a pod that is not there is judged, and takes nothing") {
  Scene scene;
  scene.make_roomy();
  scene.list_pods();
  CHECK(scene.resize(with_memory(pod("a"), "6Gi"), true).admitted());
  CHECK(scene.admit({with_memory(pod("b"), "6Gi")}, false).front().admitted());
}

TEST_CASE("a call that ends before its answer leaves pods as they were resized before, for all that it asked about") {
  Scene scene;
  scene.make_roomy();
  scene.run({"a", "b"}, requests_3276_mib);
  const auto begin = [&](const std::vector<const char*>& amounts) {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    for (const auto* amount : amounts) asked->push_back({.pod = with_memory(pod("a"), amount), .resize = true});
    return scene.admission.admit(asked, true);
  };
  const auto fits = [&](const char* amount) {
    return scene.admit({with_memory(pod("next"), amount)}, false).front().admitted();
  };
  {
    const auto task = begin({"4500Mi"});
    CHECK(scene.decide(*task).front().admitted());
    CHECK_FALSE(fits("1Gi"));
  }
  CHECK(fits("1Gi"));

  CHECK(scene.resize(with_memory(pod("a"), "4Gi"), true).admitted());
  {
    const auto task = begin({"4500Mi", "3500Mi"});
    CHECK(scene.decide(*task).front().admitted());
    CHECK_FALSE(fits("800Mi"));
    CHECK(scene.decide(*task).front().admitted());
    CHECK(fits("1Gi"));
  }
  CHECK(fits("800Mi"));
  CHECK_FALSE(fits("1Gi"));
}

}  // namespace evictd::agent::pod_admission_resize_test
