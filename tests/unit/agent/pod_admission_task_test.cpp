#include "agent/pod_admission_task.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/admission_scene.hpp"
#include "core/node_condition.hpp"
#include "fixture/pods.hpp"
#include "fixture/result.hpp"

namespace evictd::agent::pod_admission_task_test {
namespace {

using namespace admission_scene;
using fixture::pod;

/// Far more than a turn of the reactor takes.
constexpr std::size_t very_many = 200;

api::AdmissionRequestsPtr ask_about(std::vector<std::string> names) {
  auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
  for (auto& name : names) asked->push_back({.pod = pod(std::move(name))});
  return asked;
}

api::AdmissionRequestsPtr ask_about_very_many() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < very_many; ++i) names.push_back("p" + std::to_string(i));
  return ask_about(std::move(names));
}

}  // namespace

TEST_CASE("very many pods are decided over several turns, in their order, and each of them once") {
  Scene scene;
  scene.node.now.node->allocatable = fixture::amounts({{"pods", "150"}});
  scene.list_pods();
  const auto task = scene.admission.admit(ask_about_very_many(), false);
  std::vector<v1::AdmitResponse> answers;
  int turns = 0;
  for (; answers.size() < very_many; ++turns) {
    auto some = fixture::value_of(task->decide_some());
    REQUIRE_FALSE(some.empty());
    for (auto& one : some) answers.push_back(std::move(one));
  }
  CHECK(turns > 1);
  REQUIRE(answers.size() == very_many);
  CHECK(answers[149].admitted());
  CHECK(answers[150].reason() == "OutOfpods");
}

TEST_CASE("what changes between two turns counts for pods that are to run; a question goes by its first look") {
  Scene scene;
  scene.node.now.node->allocatable = fixture::amounts({{"pods", "1000"}});
  scene.list_pods();
  for (const bool reserve : {false, true}) {
    CAPTURE(reserve);
    scene.node.now.conditions = {};
    const auto task = scene.admission.admit(ask_about_very_many(), reserve);
    const auto first = fixture::value_of(task->decide_some());
    REQUIRE(first.size() < very_many);
    CHECK(first.back().admitted());
    scene.node.now.conditions = {core::NodeCondition::DiskPressure};
    const auto second = fixture::value_of(task->decide_some());
    REQUIRE_FALSE(second.empty());
    CHECK(second.front().admitted() == !reserve);
  }
}

TEST_CASE("where plugins have a part pods are decided one by one, each beside those that came in between") {
  Scene scene;
  scene.serve_devices();
  scene.node.now.node->allocatable = fixture::amounts({{"pods", "2"}});
  const auto task = scene.admission.admit(ask_about({"a", "b"}), true);
  CHECK(scene.decide(*task).size() == 1);
  CHECK(scene.admit({pod("c")}, true).front().admitted());
  const auto second = scene.decide(*task);
  REQUIRE(second.size() == 1);
  CHECK(second.front().reason() == "OutOfpods");
}

TEST_CASE("a task that goes gives back what it has reserved, unless that was to be kept") {
  Scene scene;
  scene.list_pods();
  auto task = scene.begin(pod("a"));
  REQUIRE(fixture::value_of(task->decide_some()).front().admitted());
  CHECK_FALSE(scene.admit({pod("b")}, false).front().admitted());
  SUBCASE("it is kept") {
    task->keep();
    task.reset();
    CHECK_FALSE(scene.admit({pod("b")}, false).front().admitted());
  }
  SUBCASE("it is not") {
    task.reset();
    CHECK(scene.admit({pod("b")}, false).front().admitted());
  }
}

TEST_CASE("a pod that is asked about too early still waits, and whoever asks late for room is called at once") {
  Scene scene;
  scene.run({"b"});
  Asking asking{scene.begin(vital("vital"))};
  CHECK_FALSE(asking.decide());
  CHECK_FALSE(asking.decide());
  CHECK(asking.woken == 0);
  scene.end("b");
  CHECK(asking.woken == 1);
  asking.task->when_room([&asking] { asking.woken += 10; });
  CHECK(asking.woken == 11);
  const auto answer = asking.decide();
  REQUIRE(answer);
  CHECK(answer->admitted());
}

}  // namespace evictd::agent::pod_admission_task_test
