#include "evict/pod_cgroup_end.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cri/run.hpp"
#include "evict/slow_lookout.hpp"
#include "fixture/captured_log.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::evict::pod_cgroup_end_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::Entry;
using fixture::file;
using fixture::Tree;

/// The tree of one controller (v1). Unlike a cgroup's, a file would keep its directory from being removed: the pod's
/// have none, and so no process that the test does not put there.
Entry controller(std::string name) {
  return dir(std::move(name), {file("cgroup.procs", ""), file("memory.usage_in_bytes", "0\n"),
                               dir("kubepods", {dir("podu1", {dir("c1")}), dir("podu2")})});
}

/// A node whose pod "u1" has gone and left its cgroup, with a container's in it, beside the pod "u2".
struct Scene {
  void begin(core::Duration patience) {
    left.reset();
    core::Pod spec{.name_space = "shop", .name = "web", .uid = uid};
    const auto pod = std::make_shared<const pods::RuntimePod>(
        pods::RuntimePod{.pod = std::make_shared<const core::Pod>(std::move(spec)), .cgroup = cgroup});
    asio::co_spawn(
        reactor,
        [this, pod, patience]() -> asio::awaitable<void> { left = co_await end.awaited(pod, os::now() + patience); },
        asio::detached);
  }
  /// What is said to be left.
  std::string finish() {
    REQUIRE(test::run_until(reactor, [&] { return left.has_value(); }));
    return *left;
  }
  std::string wait(core::Duration patience = 1min) {
    begin(patience);
    return finish();
  }
  /// Goes on until the pod's cgroup has been looked at again and again.
  void look_around() {
    asio::steady_timer timer{reactor, 50ms};
    bool over = false;
    timer.async_wait([&over](const auto&) { over = true; });
    REQUIRE(test::run_until(reactor, [&over] { return over; }));
  }
  [[nodiscard]] bool has(std::string_view name) const { return std::filesystem::exists(tree.path(name)); }
  [[nodiscard]] bool has_pod() const { return has("memory/kubepods/podu1"); }

  std::string uid = "u1";
  std::string cgroup = "/kubepods/podu1";
  test::SlowLookout lookout;
  Tree tree{{controller("memory"), controller("pids")}};
  node::CgroupHierarchy hierarchy = fixture::value_of(node::CgroupHierarchy::detect(tree.path()));
  asio::io_context reactor{1};
  std::optional<std::string> left;
  PodCgroupEnd end{PodCgroupEnd::Parts{.hierarchy = hierarchy, .pods_cgroup = "/kubepods", .kubelet = lookout}};
};

}  // namespace

TEST_CASE("where no kubelet runs the pod's cgroup is removed, with what the runtime left in it, and no other") {
  Scene scene;
  CHECK(scene.wait().empty());
  CHECK_FALSE(scene.has_pod());
  CHECK_FALSE(scene.has("pids/kubepods/podu1"));
  CHECK(scene.has("memory/kubepods/podu2"));
  CHECK(scene.has("pids/kubepods/podu2"));
}

TEST_CASE("where a kubelet runs it removes the pod's cgroup, and that is awaited") {
  Scene scene;
  scene.lookout.kubelet = true;
  SUBCASE("it does") {
    scene.begin(1min);
    scene.look_around();
    CHECK_FALSE(scene.left.has_value());
    CHECK(scene.has("memory/kubepods/podu1/c1"));
    scene.tree.remove("memory/kubepods/podu1");
    CHECK(scene.finish().empty());
  }
  SUBCASE("it does not in time") {
    CHECK(scene.wait(20ms) == "the pod's cgroup");
    CHECK(scene.has("memory/kubepods/podu1/c1"));
  }
  CHECK(scene.has("pids/kubepods/podu1/c1"));
}

TEST_CASE(
    "a cgroup that is gone already is not waited for, and goes from the other controllers where no kubelet runs") {
  Scene scene;
  scene.tree.remove("memory/kubepods/podu1");
  SUBCASE("no kubelet runs") {
    CHECK(scene.wait().empty());
    CHECK_FALSE(scene.has("pids/kubepods/podu1"));
  }
  SUBCASE("a kubelet runs") {
    scene.lookout.kubelet = true;
    CHECK(scene.wait().empty());
    CHECK(scene.has("pids/kubepods/podu1"));
  }
}

TEST_CASE("a pod without a cgroup to itself has nothing that is awaited, and nobody is asked for a kubelet") {
  Scene scene;
  std::atomic<bool> asked = false;
  scene.lookout.before_the_answer = [&asked] { asked = true; };
  scene.cgroup.clear();
  CHECK(scene.wait().empty());
  CHECK_FALSE(asked);
  CHECK(scene.has_pod());
}

TEST_CASE("what is not the pod's own, or systemd's, is left where no kubelet runs, and nobody waits for it") {
  Scene scene;
  SUBCASE("another pod's") { scene.cgroup = "/kubepods/podu2"; }
  SUBCASE("elsewhere") { scene.cgroup = "/system/podu1"; }
  SUBCASE("a slice") { scene.cgroup = "/kubepods/kubepods-podu1.slice"; }
  const auto directory = "memory" + scene.cgroup;
  std::filesystem::create_directories(scene.tree.path(directory));
  CHECK(scene.wait().empty());
  CHECK(scene.has(directory));
  CHECK(scene.has_pod());
}

TEST_CASE("a pod that somebody has started again keeps its cgroup, which is not waited for") {
  Scene scene;
  scene.tree.write("memory/kubepods/podu1/c1/cgroup.procs", "1\n");
  SUBCASE("no kubelet runs") {}
  SUBCASE("a kubelet runs") { scene.lookout.kubelet = true; }
  CHECK(scene.wait().empty());
  CHECK(scene.has_pod());
  CHECK(scene.has("pids/kubepods/podu1/c1"));
}

TEST_CASE("a cgroup that something is still in is removed again and again, until the time is over") {
  Scene scene;
  scene.tree.write("pids/kubepods/podu1/c1/busy", "");
  SUBCASE("it is empty later") {
    scene.begin(1min);
    scene.look_around();
    CHECK_FALSE(scene.left.has_value());
    CHECK(scene.has("pids/kubepods/podu1/c1"));
    scene.tree.remove("pids/kubepods/podu1/c1/busy");
    CHECK(scene.finish().empty());
    CHECK_FALSE(scene.has("pids/kubepods/podu1"));
    CHECK_FALSE(scene.has_pod());
  }
  SUBCASE("it is not") {
    CHECK(scene.wait(20ms) == "the pod's cgroup");
    CHECK(scene.has("pids/kubepods/podu1/c1"));
  }
}

TEST_CASE("while it cannot be told whether a kubelet runs nothing is removed, nor after that") {
  std::latch may_answer{1};
  Scene scene;
  scene.lookout.before_the_answer = [&may_answer] { may_answer.wait(); };
  CHECK(scene.wait(20ms) == "the pod's cgroup");
  may_answer.count_down();
  scene.look_around();
  CHECK(scene.has("memory/kubepods/podu1/c1"));
}

TEST_CASE("a cgroup that may not be removed is logged, and not waited for") {
  const fixture::CapturedLog log;
  Scene scene;
  scene.tree.add("", dir("elsewhere", {dir("podu1")}));
  scene.tree.remove("pids/kubepods");
  std::filesystem::create_directory_symlink(scene.tree.path("elsewhere"), scene.tree.path("pids/kubepods"));
  CHECK(scene.wait().empty());
  const auto lines = log.lines();
  REQUIRE(lines.size() == 1);
  CHECK(lines.front().starts_with("shop/web: its cgroup is left behind: "));
  CHECK(scene.has("elsewhere/podu1"));
}

}  // namespace evictd::evict::pod_cgroup_end_test
