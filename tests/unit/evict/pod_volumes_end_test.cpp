#include "evict/pod_volumes_end.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
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
  explicit Scene(RemoveVolumes mode) : mode{mode} {}

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
  [[nodiscard]] bool has_volume() const {
    return std::filesystem::exists(tree.path("kubelet/pods/u1/volumes/kubernetes.io~empty-dir/cache"));
  }

  RemoveVolumes mode;
  std::string cgroup = "/kubepods/podu1";
  Tree tree{{dir("cgroup", {file("cgroup.controllers", "memory"), dir("kubepods")}),
             dir("kubelet", {dir("pods", {dir("u1", {dir("volumes", {dir("kubernetes.io~empty-dir",
                                                                         {dir("cache", {file("f", "x")})})})})})})}};
  node::CgroupHierarchy hierarchy = fixture::value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  asio::io_context reactor{1};
  test::SlowLookout lookout;
  PodVolumesEnd end{reactor.get_executor(),
                    {.hierarchy = hierarchy, .kubelet_root = tree.path("kubelet"), .mode = mode, .kubelet = lookout}};
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

}  // namespace evictd::evict::pod_volumes_end_test
