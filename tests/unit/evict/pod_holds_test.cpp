#include "evict/pod_holds.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "cri/run.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "os/now.hpp"

namespace evictd::evict::pod_holds_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::value_of;

using Task = std::move_only_function<void()>;

/// Works at once, or when the test says so.
struct FakeWorker final : async::Worker {
  explicit FakeWorker(std::deque<std::pair<Task, Task>>& waiting, const bool& waits)
      : waiting_{waiting}, waits_{waits} {}

  void run(Task work, Task done) override {
    waiting_.emplace_back(std::move(work), std::move(done));
    if (!waits_) work_off(waiting_);
  }
  static void work_off(std::deque<std::pair<Task, Task>>& waiting) {
    while (!waiting.empty()) {
      auto [work, done] = std::move(waiting.front());
      waiting.pop_front();
      work();
      done();
    }
  }

 private:
  std::deque<std::pair<Task, Task>>& waiting_;
  const bool& waits_;
};

struct Scene {
  Result<node::Brake> hold(const std::string& cgroup = "/kubepods/poda", core::Duration patience = 60s) {
    HoldRequest request{.uid = "a", .cgroup = cgroup, .headroom = 4096};
    return test::run(reactor, holds->hold(std::move(request), os::now() + patience));
  }
  [[nodiscard]] std::string high() const {
    return value_of(node::read_held_file(value_of(hierarchy->memory("/kubepods/poda")), "memory.high"));
  }

  fixture::Tree tree{
      fixture::v2_node({}, 0,
                       {dir("kubepods", {dir("poda", {file("memory.current", "8192\n"), file("memory.high", "max\n"),
                                                      file("cgroup.procs", "41\n42\n")})})})};
  std::shared_ptr<const node::CgroupHierarchy> hierarchy =
      std::make_shared<const node::CgroupHierarchy>(value_of(node::CgroupHierarchy::detect(tree.path("cgroup"))));
  pid_t protected_one = 0;
  bool waits = false;
  std::deque<std::pair<Task, Task>> waiting{};
  boost::asio::io_context reactor{1};
  std::unique_ptr<PodHolds> holds = std::make_unique<PodHolds>(
      reactor.get_executor(), PodHolds::Parts{.hierarchy = hierarchy,
                                              .pods_cgroup = "/kubepods",
                                              .is_protected = [this](pid_t pid) { return pid == protected_one; },
                                              .notes = node::HoldNotes{tree.path("run/held")},
                                              .worker = std::make_unique<FakeWorker>(waiting, waits)});
};

}  // namespace

TEST_CASE("a pod is held, and let go") {
  Scene scene;
  CHECK(value_of(scene.hold()).limit == 12288);
  CHECK(scene.high() == "12288");
  scene.holds->let_go("a");
  CHECK(scene.high() == "max");
  scene.holds->let_go("a");
}

TEST_CASE("what is held is let go with the holder") {
  Scene scene;
  REQUIRE(scene.hold().has_value());
  scene.holds.reset();
  CHECK(scene.high() == "max");
}

TEST_CASE("a cgroup that is no pod's, and one with a process that the node needs, is not touched") {
  Scene scene;
  CHECK(error_of(scene.hold("/kubepods")) == "the pod has no cgroup to itself");
  CHECK(error_of(scene.hold("/system")) == "the pod has no cgroup to itself");
  CHECK(error_of(scene.hold("/kubepods/podb")).contains("podb"));
  scene.protected_one = 42;
  CHECK(error_of(scene.hold()) == "a process that the node needs is in the pod's cgroup");
  CHECK(scene.high() == "max");
}

TEST_CASE("a hold that comes too late is undone") {
  Scene scene;
  scene.waits = true;
  CHECK(error_of(scene.hold("/kubepods/poda", 1ms)) == "that takes too long");
  scene.waits = false;
  FakeWorker::work_off(scene.waiting);
  CHECK(scene.high() == "max");
}

}  // namespace evictd::evict::pod_holds_test
