#include "node/pod_directories.hpp"

#include <doctest/doctest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "fixture/mount.hpp"
#include "fixture/tree.hpp"

namespace evictd::node {
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

TEST_CASE("a memory-backed emptyDir is measured on its own file system" * doctest::skip(Mount::impossible())) {
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
        closed.native() + ": Permission denied; run as root or allow evictd's user to read it");
  CHECK(bytes(reading.logs, "main") >= 10 << 10);
}

}  // namespace evictd::node
