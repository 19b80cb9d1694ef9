#include "evict/pod_volumes_end.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/deadline_thread.hpp"
#include "cri/run.hpp"
#include "evict/slow_lookout.hpp"
#include "fixture/captured_log.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::evict::pod_volumes_end_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Tree;

/// A node whose pod "u1" has gone and left an emptyDir; its cgroups are files.
struct Scene {
  explicit Scene(RemoveVolumes mode, core::Duration longest_piece = 250ms) : mode{mode}, longest_piece{longest_piece} {}

  /// What is said to be left.
  std::string wait(core::Duration patience = 1min) {
    std::optional<std::string> left;
    core::Pod spec{.name_space = "shop", .name = "web", .uid = "u1"};
    const auto pod = std::make_shared<const pods::RuntimePod>(
        pods::RuntimePod{.pod = std::make_shared<const core::Pod>(std::move(spec)), .cgroup = cgroup});
    asio::co_spawn(
        reactor, [&]() -> asio::awaitable<void> { left = co_await end.awaited(pod, os::now() + patience); },
        asio::detached);
    REQUIRE(test::run_until(reactor, [&] { return left.has_value(); }));
    return *left;
  }
  /// Begins to remove those of a pod that has no cgroup, as `ended` says then.
  void begin(const std::string& uid, core::Duration patience = 1min) {
    core::Pod spec{.name_space = "shop", .name = uid, .uid = uid};
    const auto pod = std::make_shared<const pods::RuntimePod>(
        pods::RuntimePod{.pod = std::make_shared<const core::Pod>(std::move(spec)), .cgroup = {}});
    auto removal = [this, uid, pod, give_up = os::now() + patience]() -> asio::awaitable<void> {
      const auto left = co_await end.awaited(pod, give_up);
      ended.push_back(uid + ": " + left);
    };
    asio::co_spawn(reactor, std::move(removal), asio::detached);
  }
  void add_file(const std::string& uid) const {
    const auto cache = tree.path("kubelet/pods/" + uid + "/volumes/kubernetes.io~empty-dir/cache");
    std::filesystem::create_directories(cache);
    std::ofstream{cache / "f"};
  }
  [[nodiscard]] bool has_volume() const {
    return std::filesystem::exists(tree.path("kubelet/pods/u1/volumes/kubernetes.io~empty-dir/cache"));
  }

  RemoveVolumes mode;
  core::Duration longest_piece;
  std::vector<std::string> ended{};  // in this order: "UID: what is left"
  std::string cgroup = "/kubepods/podu1";
  Tree tree{{dir("cgroup", {file("cgroup.controllers", "memory"), dir("kubepods")}),
             dir("kubelet", {dir("pods", {dir("u1", {dir("volumes", {dir("kubernetes.io~empty-dir",
                                                                         {dir("cache", {file("f", "x")})})})})})})}};
  node::CgroupHierarchy hierarchy = fixture::value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  asio::io_context reactor{1};
  test::SlowLookout lookout;
  PodVolumesEnd end{reactor.get_executor(),
                    {.hierarchy = hierarchy,
                     .kubelet_root = tree.path("kubelet"),
                     .mode = mode,
                     .kubelet = lookout,
                     .longest_piece = longest_piece}};
};

}  // namespace

TEST_CASE("the volumes of a pod that is gone are removed where no kubelet runs, or always, or never") {
  SUBCASE("no kubelet runs") {
    Scene scene{RemoveVolumes::where_no_kubelet_runs};
    CHECK(scene.wait().empty());
    CHECK_FALSE(scene.has_volume());
  }
  SUBCASE("a kubelet runs") {
    Scene scene{RemoveVolumes::where_no_kubelet_runs};
    scene.lookout.kubelet = true;
    CHECK(scene.wait().empty());
    CHECK(scene.has_volume());
  }
  SUBCASE("always") {
    Scene scene{RemoveVolumes::always};
    scene.lookout.kubelet = true;
    CHECK(scene.wait().empty());
    CHECK_FALSE(scene.has_volume());
  }
  SUBCASE("never") {
    Scene scene{RemoveVolumes::never};
    CHECK(scene.wait().empty());
    CHECK(scene.has_volume());
  }
}

TEST_CASE("a pod that somebody has started again keeps its volumes") {
  Scene scene{RemoveVolumes::always};
  scene.tree.add("cgroup/kubepods",
                 dir("podu1", {file("cgroup.events", "populated 1\nfrozen 0\n"), file("cgroup.procs", "1\n")}));
  CHECK(scene.wait().empty());
  CHECK(scene.has_volume());
}

TEST_CASE("a pod without a cgroup to itself has its volumes removed") {
  Scene scene{RemoveVolumes::always};
  scene.cgroup.clear();
  CHECK(scene.wait().empty());
  CHECK_FALSE(scene.has_volume());
}

TEST_CASE("while it cannot be told whether a kubelet runs nothing is removed; later it is all the same") {
  std::latch may_answer{1};
  Scene scene{RemoveVolumes::where_no_kubelet_runs};
  scene.lookout.before_the_answer = [&] { may_answer.wait(); };
  CHECK(scene.wait(20ms) == "the pod's emptyDirs");
  CHECK(scene.has_volume());
  may_answer.count_down();
  CHECK(test::run_until(scene.reactor, [&] { return !scene.has_volume(); }));
}

TEST_CASE("a kubelet that comes before the volumes are removed has them left to it") {
  std::latch may_answer{1};
  Scene scene{RemoveVolumes::where_no_kubelet_runs};
  scene.lookout.before_the_answer = [&] { may_answer.wait(); };
  CHECK(scene.wait(20ms) == "the pod's emptyDirs");
  scene.lookout.kubelet = true;
  may_answer.count_down();
  CHECK(scene.wait().empty());
  CHECK(scene.has_volume());
}

TEST_CASE("of a pod that could run again unseen what is not removed in time is left, and that is said") {
  const fixture::CapturedLog log;
  std::latch may_answer{1};
  Scene scene{RemoveVolumes::where_no_kubelet_runs};
  scene.cgroup.clear();
  scene.lookout.before_the_answer = [&] { may_answer.wait(); };
  CHECK(scene.wait(20ms) == "the pod's emptyDirs");
  may_answer.count_down();
  CHECK(log.lines() ==
        std::vector<std::string>{"shop/web: some of its emptyDirs are left behind: there was no time to remove them"});
  CHECK(scene.has_volume());
}

TEST_CASE("a pod with more files than a piece has time for has others removed in between") {
  std::atomic<int> turns = 0;
  Scene scene{RemoveVolumes::where_no_kubelet_runs, 0ms};  // no file is removed in no time
  scene.lookout.before_the_answer = [&] { ++turns; };
  std::filesystem::create_directories(scene.tree.path("kubelet/pods/u2/volumes/kubernetes.io~empty-dir"));
  scene.begin("u1");
  scene.begin("u2");
  REQUIRE(test::run_until(scene.reactor, [&] { return !scene.ended.empty(); }));
  CHECK(scene.ended == std::vector<std::string>{"u2: "});
  CHECK(turns <= 3);  // one of u1, that of u2, and perhaps the next one of u1
}

TEST_CASE("who has given up waiting for the others has no turn any more, and those behind it have theirs") {
  std::latch may_answer{1};
  Scene scene{RemoveVolumes::where_no_kubelet_runs};
  scene.add_file("u2");
  scene.add_file("u3");
  scene.lookout.before_the_answer = [&] { may_answer.wait(); };
  scene.begin("u1");
  scene.begin("u2", 20ms);
  scene.begin("u3");
  REQUIRE(test::run_until(scene.reactor, [&] { return !scene.ended.empty(); }));
  may_answer.count_down();
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.ended.size() == 3; }));
  CHECK(scene.ended == std::vector<std::string>{"u2: the pod's emptyDirs", "u1: ", "u3: "});
}

}  // namespace evictd::evict::pod_volumes_end_test
