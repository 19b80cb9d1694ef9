#include "node/pod_directories.hpp"

#include <doctest/doctest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "fixture/mount.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::node::pod_directories_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Mount;
using fixture::Tree;

const PodName web{.uid = "u1", .name_space = "default", .name = "web"};

std::string kib(std::size_t count) { return std::string(count * 1024, 'x'); }

std::vector<fixture::Entry> node(std::vector<fixture::Entry> logs, std::vector<fixture::Entry> volumes) {
  return {dir("logs", {dir("default_web_u1", std::move(logs))}),
          dir("kubelet", {dir("pods", {dir("u1", {dir("volumes", std::move(volumes))})})})};
}

PodDiskReading measure(const Tree& tree, const PodName& pod = web, std::int64_t entries = 1'000'000) {
  WalkBudget budget(entries, 1min);
  return measure_pod_directories({.logs = tree.path("logs"), .kubelet = tree.path("kubelet")}, pod, budget);
}

std::int64_t bytes(const PodDiskReading::ByName& usage, const char* name) { return *usage.at(name).bytes; }

}  // namespace

TEST_CASE("each container has the logs of its directory, rotated ones included") {
  const Tree tree{node({dir("main", {file("0.log", kib(100)), file("0.log.20240101.gz", kib(50))}),
                        dir("sidecar", {file("0.log", kib(10))})},
                       {})};
  const auto before = core::Instant::clock::now();
  const auto reading = measure(tree);
  REQUIRE(reading.logs.size() == 2);
  CHECK(bytes(reading.logs, "main") >= 150 << 10);
  CHECK(reading.logs.at("main").inodes == 3);
  CHECK(bytes(reading.logs, "sidecar") < 100 << 10);
  CHECK(reading.complete);
  CHECK_FALSE(reading.error);
  CHECK(reading.time >= before);
}

TEST_CASE("files directly in the log directory and etc-hosts belong to the pod as a whole") {
  const Tree tree{node({file("termination.log", kib(20)), dir("main", {file("0.log", "x")})}, {})};
  tree.add("kubelet/pods/u1", file("etc-hosts", kib(4)));
  const auto reading = measure(tree);
  CHECK(reading.pod_level.inodes == 2);
  CHECK(*reading.pod_level.bytes >= 24 << 10);
  CHECK(*reading.pod_level.bytes < 100 << 10);
}

TEST_CASE("writable layers that are asked for are walked where the mount table says, and others are left out") {
  const Tree tree{
      {dir("logs"), dir("kubelet"),
       dir("proc", {dir("1", {dir("root", {dir("s", {dir("3", {dir("fs", {file("data", kib(300))})})})}),
                              file("mountinfo",
                                   "1 2 0:3 / /k8s.io/c0ffee/rootfs rw - overlay o rw,upperdir=/s/3/fs\n"
                                   "1 2 0:4 / /k8s.io/gone/rootfs rw - overlay o rw,upperdir=/s/4/fs\n")})})}};
  auto pod = web;
  pod.containers = {"c0ffee", "gone", "unknown"};
  const PodRoots roots{.logs = tree.path("logs"),
                       .kubelet = tree.path("kubelet"),
                       .layers = std::make_shared<LayerMounts>(tree.path("proc"))};
  WalkBudget budget(1000, 1min);
  const auto reading = measure_pod_directories(roots, pod, budget);
  CHECK(reading.complete);
  REQUIRE(reading.layers.size() == 1);
  CHECK(bytes(reading.layers, "c0ffee") >= 300 << 10);
  CHECK(reading.layers.at("c0ffee").inodes == 2);
  CHECK(measure_pod_directories(roots, web, budget).layers.empty());
}

TEST_CASE("local volumes are measured by name, others are listed and never touched") {
  const Tree tree{node({}, {dir("kubernetes.io~empty-dir", {dir("cache", {file("f", kib(100))}), dir("tmp")}),
                            dir("kubernetes.io~configmap", {dir("settings", {file("a.conf", "x")})}),
                            dir("kubernetes.io~projected", {dir("token", {file("large", kib(100))})}),
                            dir("kubernetes.io~nfs", {dir("share")}), dir("unrelated", {dir("x")})})};
  const auto reading = measure(tree);
  CHECK(reading.volumes.size() == 3);
  CHECK(bytes(reading.volumes, "cache") >= 100 << 10);
  CHECK(reading.volumes.at("cache").inodes == 2);
  CHECK(reading.volumes.at("tmp").inodes == 1);
  CHECK(reading.volumes.at("settings").inodes == 2);
  CHECK(reading.directories == std::vector<VolumeDirectory>{{"settings", "kubernetes.io~configmap"},
                                                            {"cache", "kubernetes.io~empty-dir"},
                                                            {"tmp", "kubernetes.io~empty-dir"},
                                                            {"share", "kubernetes.io~nfs"},
                                                            {"token", "kubernetes.io~projected"}});
}

TEST_CASE("a memory-backed emptyDir is measured on its own file system") {
  SKIP_IF(Mount::impossible());
  const Tree tree{node({}, {dir("kubernetes.io~empty-dir", {dir("shm")})})};
  const auto mount = Mount::tmpfs(tree.path("kubelet/pods/u1/volumes/kubernetes.io~empty-dir/shm"), "size=1m");
  tree.add("kubelet/pods/u1/volumes/kubernetes.io~empty-dir/shm", file("f", kib(300)));
  CHECK(measure(tree).volumes.at("shm") == core::DiskUsage{.bytes = 300 << 10, .inodes = 2});
}

TEST_CASE("a pod without directories uses nothing") {
  const Tree tree;
  const auto reading = measure(tree);
  CHECK(reading.complete);
  CHECK_FALSE(reading.error);
  CHECK(reading.logs.empty());
  CHECK(reading.volumes.empty());
  CHECK(reading.pod_level == core::DiskUsage{.bytes = 0, .inodes = 0});
}

TEST_CASE("the bound holds for all of a pod's directories together") {
  const Tree tree{node({dir("a", {file("1", ""), file("2", "")}), dir("b", {file("1", ""), file("2", "")})},
                       {dir("kubernetes.io~empty-dir", {dir("v", {file("1", ""), file("2", "")})})})};
  CHECK(measure(tree, web, 6).complete);
  const auto reading = measure(tree, web, 3);
  CHECK_FALSE(reading.complete);
  CHECK_FALSE(reading.error);
  CHECK(*reading.logs.at("a").inodes + *reading.logs.at("b").inodes + *reading.volumes.at("v").inodes == 3 + 3);
}

TEST_CASE("names that lead elsewhere are refused") {
  const Tree tree{std::vector{dir("logs"), dir("kubelet", {dir("pods")}), dir("secret", {file("f", kib(100))})}};
  for (const auto& pod : {PodName{"../../secret", "default", "web"}, PodName{"..", "default", "web"},
                          PodName{"u1", "x/../../secret", "web"}, PodName{"", "default", "web"}}) {
    const auto reading = measure(tree, pod);
    CHECK_FALSE(reading.complete);
    REQUIRE(reading.error);
    CHECK(reading.error->message.ends_with("is not the name of a directory"));
  }
}

TEST_CASE("a directory that may not be read is told of, and the rest is measured") {
  const Tree tree{node({dir("main", {file("0.log", kib(10))})}, {dir("kubernetes.io~empty-dir", {dir("v")})})};
  std::filesystem::permissions(tree.path(), std::filesystem::perms::all);
  const auto closed = tree.path("kubelet/pods/u1/volumes");
  REQUIRE(::chmod(closed.c_str(), 0) == 0);
  // Root may read everything: the walk is made by a thread that is another user to the file system.
  constexpr uid_t nobody = 65534;
  PodDiskReading reading;
  std::thread([&] {
    if (::geteuid() == 0) ::setfsuid(nobody);
    reading = measure(tree);
  }).join();
  REQUIRE(::chmod(closed.c_str(), 0700) == 0);
  CHECK_FALSE(reading.complete);
  REQUIRE(reading.error);
  CHECK(reading.error->message ==
        closed.native() + ": Permission denied; run as root, or give evictd's user the right to it");
  CHECK(bytes(reading.logs, "main") >= 10 << 10);
}

TEST_CASE("no symbolic link below the roots is followed, at whatever place") {
  const Tree outside{std::vector{dir("main", {file("0.log", kib(100))}), file("large", kib(100)),
                                 dir("kubernetes.io~empty-dir", {dir("v", {file("f", kib(100))})})}};
  const auto check = [&](const Tree& tree) {
    const auto reading = measure(tree);
    CHECK(*reading.pod_level.bytes < 50 << 10);
    for (const auto* usages : {&reading.logs, &reading.volumes})
      for (const auto& [name, usage] : *usages) CHECK(*usage.bytes < 50 << 10);
    CHECK(named_volumes({.logs = tree.path("logs"), .kubelet = tree.path("kubelet")}, web, "kubernetes.io~empty-dir")
              .empty());
  };
  const auto link = [&](const Tree& tree, const char* place, const char* target = "") {
    std::filesystem::remove_all(tree.path(place));
    std::filesystem::create_symlink(outside.path(target), tree.path(place));
  };
  for (const auto& [place, target] : std::vector<std::pair<const char*, const char*>>{
           {"logs/default_web_u1", ""},
           {"logs/default_web_u1/main", "main"},
           {"logs/default_web_u1/file", "large"},
           {"kubelet/pods/u1", ""},
           {"kubelet/pods/u1/etc-hosts", "large"},
           {"kubelet/pods/u1/volumes", ""},
           {"kubelet/pods/u1/volumes/kubernetes.io~empty-dir", "kubernetes.io~empty-dir"},
           {"kubelet/pods/u1/volumes/kubernetes.io~empty-dir/v", "kubernetes.io~empty-dir/v"}}) {
    CAPTURE(place);
    const Tree tree{node({dir("main")}, {dir("kubernetes.io~empty-dir")})};
    link(tree, place, target);
    check(tree);
  }
  // The roots are the operator's: they may be links.
  const Tree tree{std::vector{dir("real")}};
  std::filesystem::create_symlink(outside.path(), tree.path("real/default_web_u1"));
  std::filesystem::remove(tree.path("real/default_web_u1"));
  tree.add("real", dir("default_web_u1", {dir("main", {file("0.log", kib(60))})}));
  std::filesystem::create_symlink(tree.path("real"), tree.path("logs"));
  CHECK(bytes(measure(tree).logs, "main") >= 60 << 10);
}

TEST_CASE("names of any kind lead nowhere but to the pod's own directories") {
  using namespace std::string_literals;
  const Tree tree{std::vector{
      dir("logs", {file("f", kib(100))}),
      dir("kubelet",
          {dir("pods", {dir("volumes", {dir("kubernetes.io~empty-dir", {dir("x")})}), dir("u1", {dir("volumes")})})}),
      dir("volumes", {dir("kubernetes.io~empty-dir", {dir("secret", {file("f", kib(100))})})})}};
  const PodRoots roots{.logs = tree.path("logs"), .kubelet = tree.path("kubelet")};
  for (const auto& part : {""s, "."s, ".."s, "/"s, "../.."s, "../../"s, "/etc"s, "\0"s, "u1\0/../.."s, "\n"s, "u1/"s,
                           "u1/../.."s, std::string(4096, 'x'), std::string(300, 'x'), "\x1b[2J\xff"s, "~"s, "*"s}) {
    for (const auto& pod : {PodName{part, "default", "web"}, PodName{"u2", part, "web"}, PodName{"u2", "default", part},
                            PodName{part, part, part}}) {
      CAPTURE(part);
      const auto reading = measure(tree, pod);
      CHECK(reading.logs.empty());
      CHECK(reading.volumes.empty());
      CHECK(reading.pod_level == core::DiskUsage{.bytes = 0, .inodes = 0});
      CHECK(named_volumes(roots, pod, "kubernetes.io~empty-dir").empty());
      for (const auto& directory : local_directories(roots, pod)) {
        const auto normal = std::filesystem::path(directory).lexically_normal().native();
        CHECK(
            (normal.starts_with(roots.logs.native() + "/") || normal.starts_with((roots.kubelet / "pods/").native())));
        CHECK_FALSE(normal.contains('\0'));
      }
    }
  }
}

TEST_CASE("volumes are named by their directories, but for what no volume is called") {
  const Tree tree{node({}, {dir("kubernetes.io~empty-dir",
                                {dir("b"), dir("a"), dir("\x1b[2J"), dir("\xff"), dir("x\n"), file("file", "")})})};
  const PodRoots roots{.logs = tree.path("logs"), .kubelet = tree.path("kubelet")};
  CHECK(named_volumes(roots, web, "kubernetes.io~empty-dir") == std::vector<NamedVolume>{{"a"}, {"b"}});
  CHECK(named_volumes(roots, web, "kubernetes.io~configmap").empty());
}

TEST_CASE("a pod that is walked in pieces is known as well as in one") {
  const Tree tree{
      node({dir("main", {file("0.log", kib(20))}), dir("side", {file("0.log", kib(20))}), file("f", kib(4))},
           {dir("kubernetes.io~empty-dir", {dir("v", {file("f", kib(100)), dir("d", {file("g", "")})})})})};
  const auto whole = measure(tree);
  PodWalk walk{{.logs = tree.path("logs"), .kubelet = tree.path("kubelet")}, web};
  CHECK(walk.reading().logs.empty());
  int pieces = 0;
  for (bool done = false; !done; ++pieces) {
    WalkBudget one{1, 1min};
    done = walk.go_on(one);
    CHECK(walk.reading().complete == done);
    CHECK(walk.reading().logs.contains("side"));
  }
  CHECK(pieces > 5);
  const auto reading = walk.reading();
  CHECK(reading.logs == whole.logs);
  CHECK(reading.volumes == whole.volumes);
  CHECK(reading.pod_level == whole.pod_level);
}

}  // namespace evictd::node::pod_directories_test
