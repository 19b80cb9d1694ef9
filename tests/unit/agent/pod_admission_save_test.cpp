// Admissions that are answered once what they give is written.
#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/admission_scene.hpp"
#include "agent/kept_allocations.hpp"
#include "agent/pod_admission.hpp"
#include "fixture/machines.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::pod_admission_save_test {
namespace {

using namespace std::chrono_literals;
using namespace admission_scene;
using fixture::pod;

/// A node with three devices, whose disk hangs.
struct Hanging : Scene {
  Hanging() {
    serve_devices();
    node.disk_hangs = true;
  }
};

/// A reserved admission of pods, decided, of which the disk has yet to hear.
struct Decided {
  Decided(Scene& scene, std::vector<core::Pod> pods) : scene{scene} {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    for (auto& each : pods) asked->push_back({.pod = std::move(each)});
    task = scene.admission.admit(asked, true);
    while (answers.size() < asked->size())
      for (auto& each : scene.decide(*task)) answers.push_back(std::move(each));
  }
  /// Begins to wait for the disk.
  void save() {
    REQUIRE(task->has_to_save());
    boost::asio::co_spawn(scene.loop.reactor, task->save(answers),
                          [this](const std::exception_ptr&) { is_saved = true; });
    scene.loop.clock.settle();
  }
  /// The save, from 0 on, comes to this.
  void end(std::size_t save, const Result<void>& result = {}) {
    scene.node.writes.at(save)(result);
    scene.loop.clock.settle();
  }

  Scene& scene;
  std::unique_ptr<api::AdmissionTask> task;
  std::vector<v1::AdmitResponse> answers;
  bool is_saved = false;
};

}  // namespace

TEST_CASE("a pod that is given something has no answer before that is written, with all that plugins said") {
  Hanging scene;
  Decided asking{scene, {with_gpus(pod("x"), "2")}};
  asking.save();
  CHECK_FALSE(asking.is_saved);
  REQUIRE(scene.node.saved.size() == 2);
  asking.end(0);
  CHECK_FALSE(asking.is_saved);
  REQUIRE(scene.node.saved[1].at("x").at("main").edits);
  asking.end(1);
  CHECK(asking.is_saved);
  CHECK(asking.answers.front().admitted());
  CHECK(asking.answers.front().allocations_size() == 1);
  CHECK_FALSE(asking.task->has_to_save());
}

TEST_CASE("no disk is waited for where nothing is given, by a question alone, or for what is written already") {
  Scene scene;
  scene.serve_devices();
  CHECK(scene.admit_with_gpus("early", "1").admitted());
  scene.node.disk_hangs = true;
  CHECK_FALSE(Decided(scene, {pod("x")}).task->has_to_save());
  CHECK_FALSE(Decided(scene, {with_gpus(pod("early"), "1")}).task->has_to_save());
  CHECK_FALSE(Decided(scene, {with_gpus(pod("greedy"), "4")}).task->has_to_save());
  const auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
  asked->push_back({.pod = with_gpus(pod("y"), "1")});
  const auto question = scene.admission.admit(asked, false);
  CHECK(scene.decide(*question).front().admitted());
  CHECK_FALSE(question->has_to_save());
}

TEST_CASE("a pod is rejected where what it was given cannot be written, and its devices are free again") {
  Scene scene;
  scene.serve_devices();
  scene.node.disk = fail("/var/lib/evictd/allocations.json: cannot be written: No space left on device");
  const auto answer = scene.admit_with_gpus("x", "2");
  CHECK_FALSE(answer.admitted());
  CHECK(answer.allocations().empty());
  CHECK(answer.reason() == "UnexpectedAdmissionError");
  CHECK(answer.message() ==
        "Allocate failed due to writing what the pod was given: /var/lib/evictd/allocations.json: cannot be written: "
        "No space left on device, which is unexpected");
  CHECK(answer.handlers(2).verdict() == "rejected");
  CHECK(answer.handlers(3).verdict() == "not asked");
  CHECK(scene.rejections() == 1);
  CHECK(scene.admission.allocations().empty());
  CHECK(scene.node.saved.back().empty());
  CHECK(scene.admit({pod("modest")}, true).front().admitted());
  scene.node.disk = {};
  CHECK(scene.admit_with_gpus("y", "3").admitted());
}

TEST_CASE("a pod is rejected at the limit where the disk hangs, and a write that ends later gives it nothing") {
  Hanging scene;
  Decided asking{scene, {with_gpus(pod("x"), "3")}};
  asking.save();
  scene.loop.clock.advance(longest_write - 1s);
  CHECK_FALSE(asking.is_saved);
  scene.loop.clock.advance(1s);
  REQUIRE(asking.is_saved);
  CHECK(asking.answers.front().message() ==
        "Allocate failed due to writing what the pod was given, which took longer than 5s, which is unexpected");
  CHECK(scene.rejections() == 1);
  CHECK(scene.node.saved.back().empty());
  asking.end(1);
  CHECK(scene.admission.allocations().empty());
  scene.node.disk_hangs = false;
  CHECK(scene.admit_with_gpus("y", "3").admitted());
}

TEST_CASE("pods of one call wait for one write; where it fails those stay admitted that an earlier one has") {
  Hanging scene;
  Decided asking{scene, {with_gpus(pod("x"), "1"), pod("modest"), with_gpus(pod("y"), "2")}};
  asking.save();
  REQUIRE(scene.node.writes.size() == 4);
  asking.end(1);
  CHECK_FALSE(asking.is_saved);
  SUBCASE("it ends well") {
    asking.end(3);
    CHECK(asking.is_saved);
    CHECK(asking.answers[2].admitted());
    CHECK(scene.admission.allocations().contains("y"));
  }
  SUBCASE("it fails") {
    asking.end(3, fail("no"));
    CHECK(asking.is_saved);
    CHECK_FALSE(asking.answers[2].admitted());
    CHECK_FALSE(scene.admission.allocations().contains("y"));
  }
  CHECK(asking.answers[0].admitted());
  CHECK(asking.answers[1].admitted());
  CHECK(scene.admission.allocations().contains("x"));
}

TEST_CASE("two calls about the same pod wait for the same write") {
  Hanging scene;
  Decided first{scene, {with_gpus(pod("x"), "1")}};
  Decided second{scene, {with_gpus(pod("x"), "1")}};
  REQUIRE(scene.node.writes.size() == 2);
  first.save();
  second.save();
  SUBCASE("it ends well") {
    first.end(1);
    CHECK(first.answers.front().admitted());
    CHECK(second.answers.front().admitted());
  }
  SUBCASE("it fails: neither has the pod, and whoever asks again has it written again") {
    first.end(1, fail("no"));
    CHECK_FALSE(first.answers.front().admitted());
    CHECK_FALSE(second.answers.front().admitted());
    scene.node.disk_hangs = false;
    CHECK(scene.admit_with_gpus("x", "1").admitted());
    CHECK(scene.node.saved.back().contains("x"));
  }
  CHECK(first.is_saved);
  CHECK(second.is_saved);
}

TEST_CASE("a call that waits for the disk when evictd ends goes with the reactor") {
  Hanging scene;
  auto asking = [](std::unique_ptr<api::AdmissionTask> task,
                   const api::Departure& client) -> boost::asio::awaitable<void> {
    co_await task->prepare(client);
    auto some = fixture::value_of(task->decide_some());
    co_await task->carry_out(some);
    co_await task->save(some);
  };
  boost::asio::co_spawn(scene.loop.reactor, asking(scene.begin(with_gpus(pod("x"), "1")), scene.client),
                        boost::asio::detached);
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return scene.node.writes.size() == 2; }));
  scene.loop.clock.settle();
}

}  // namespace evictd::agent::pod_admission_save_test
