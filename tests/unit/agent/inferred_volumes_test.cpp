#include "agent/inferred_volumes.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "core/filesystem_usage.hpp"
#include "fixture/mount.hpp"
#include "fixture/pods.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::agent::inferred_volumes_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Mount;
using fixture::pod;
using fixture::Tree;

/// Looks when it is told.
struct HeldWorker final : async::Worker {
  using Task = std::move_only_function<void()>;
  explicit HeldWorker(std::deque<std::pair<Task, Task>>& given) : jobs{given} {}
  void run(Task work, Task done) override { jobs.emplace_back(std::move(work), std::move(done)); }
  std::deque<std::pair<Task, Task>>& jobs;
};

struct Inferring : VolumeListener {
  explicit Inferring(const Tree& tree)
      : volumes{std::make_unique<HeldWorker>(jobs), {.logs = tree.path("logs"), .kubelet = tree.path("kubelet")}} {}

  core::Pod complete(const core::Pod& given) {
    const auto list = std::make_shared<const core::PodList>(fixture::pods({given}));
    return *volumes.complete(list, *this)->front();
  }
  void volumes_changed() override { ++changes; }
  void look() {
    auto [work, done] = std::move(jobs.front());
    jobs.pop_front();
    work();
    done();
  }

  std::deque<std::pair<HeldWorker::Task, HeldWorker::Task>> jobs;
  InferredVolumes volumes;
  int changes = 0;
};

core::Pod inferred(const Tree& tree, const core::Pod& given) {
  Inferring inferring{tree};
  CHECK(inferring.complete(given) == given);
  inferring.look();
  return inferring.complete(given);
}

core::Pod with_uid(std::string uid) {
  auto result = pod("web");
  result.uid = std::move(uid);
  return result;
}

const auto volumes =
    dir("volumes", {dir("kubernetes.io~empty-dir", {dir("cache")}), dir("kubernetes.io~configmap", {dir("settings")}),
                    dir("kubernetes.io~nfs", {dir("share")})});

}  // namespace

TEST_CASE("local volumes are inferred from their directories, where the spec says none") {
  const Tree tree{dir("kubelet", {dir("pods", {dir("u1", {volumes})})})};
  const auto found = inferred(tree, with_uid("u1"));
  REQUIRE(found.volumes.size() == 2);
  CHECK(found.volumes[0] == fixture::volume("cache", core::Volume::Kind::EmptyDir));
  CHECK(found.volumes[1] == fixture::volume("settings", core::Volume::Kind::ConfigMap));
  auto known = with_uid("u1");
  known.volumes = {fixture::empty_dir("mine")};
  CHECK(inferred(tree, known) == known);
  CHECK(inferred(tree, with_uid("u2")) == with_uid("u2"));
}

TEST_CASE("volumes that are the pod's own word hide none that are found, and of those found only a limit counts") {
  const Tree tree{dir("kubelet", {dir("pods", {dir("u1", {volumes})})})};
  auto claiming = with_uid("u1");
  const auto in_memory = fixture::empty_dir("cache", "10Mi", "Memory");
  const auto no_such = fixture::volume("x", core::Volume::Kind::Other);
  claiming.volumes = {no_such, in_memory, fixture::volume("settings", core::Volume::Kind::HostPath)};
  CHECK(inferred(tree, claiming) == claiming);  // a spec of somebody in charge, say

  claiming.volumes_are_claimed = true;
  CHECK(inferred(tree, claiming).volumes == std::vector{no_such, fixture::empty_dir("cache", "10Mi"),
                                                        fixture::volume("settings", core::Volume::Kind::ConfigMap)});

  claiming.volumes = {no_such};
  const auto found = inferred(tree, claiming);
  CHECK(found.volumes == std::vector{no_such, fixture::volume("cache", core::Volume::Kind::EmptyDir),
                                     fixture::volume("settings", core::Volume::Kind::ConfigMap)});
  core::PodUsage usage;
  usage.volumes["cache"].bytes = 1 << 20;
  CHECK(core::disk_usage(found, usage, {.local_volumes = true}).bytes == 1 << 20);
}

TEST_CASE("an emptyDir on which something is mounted is in memory, and takes nothing of the disk") {
  SKIP_IF(Mount::impossible());
  const Tree tree{dir("kubelet", {dir("pods", {dir("u1", {volumes})})})};
  const auto empty_dirs = tree.path("kubelet/pods/u1/volumes/kubernetes.io~empty-dir");
  tree.add("kubelet/pods/u1/volumes/kubernetes.io~empty-dir", dir("shm"));
  const auto mount = Mount::tmpfs(empty_dirs / "shm", "size=1m");
  const auto found = inferred(tree, with_uid("u1"));
  REQUIRE(found.volumes.size() == 3);
  CHECK(found.volumes[0].medium.empty());
  CHECK(found.volumes[1].name == "shm");
  CHECK(found.volumes[1].medium == "Memory");

  const node::PodRoots roots{.logs = tree.path("logs"), .kubelet = tree.path("kubelet")};
  tree.add("kubelet/pods/u1/volumes/kubernetes.io~empty-dir/shm", file("f", std::string(64 << 10, 'x')));
  node::WalkBudget budget{1'000, std::chrono::seconds{10}};
  core::PodUsage usage;
  usage.volumes = node::measure_pod_directories(roots, {"u1", "default", "web"}, budget).volumes;
  REQUIRE(usage.volumes.at("shm").bytes >= 64 << 10);
  CHECK(core::disk_usage(found, usage, {.local_volumes = true}).bytes < 64 << 10);
}

TEST_CASE("volumes are looked for one list at a time, and only what changes is told") {
  const Tree tree{dir("kubelet", {dir("pods", {dir("u1", {volumes}), dir("u2", {volumes})})})};
  Inferring inferring{tree};
  (void)inferring.complete(with_uid("u1"));
  (void)inferring.complete(with_uid("u3"));
  (void)inferring.complete(with_uid("u2"));
  CHECK(inferring.jobs.size() == 1);
  inferring.look();
  CHECK(inferring.changes == 1);
  CHECK(inferring.jobs.size() == 1);  // for the last of those that came meanwhile
  inferring.look();
  CHECK(inferring.changes == 2);
  CHECK(inferring.complete(with_uid("u2")).volumes.size() == 2);
  inferring.look();
  CHECK(inferring.changes == 2);
  CHECK(inferring.jobs.empty());
}

TEST_CASE("no uid leads to the volumes of others, or to what only looks like some") {
  const Tree tree{std::vector{dir("kubelet", {dir("pods", {volumes, dir("u1", {volumes}), dir("linked")})}), volumes}};
  std::filesystem::create_directory_symlink("../u1/volumes", tree.path("kubelet/pods/linked/volumes"));
  using namespace std::string_literals;
  for (const auto& uid : {"../.."s, ".."s, "."s, ""s, "u1/../.."s, "/"s, "u1\0"s, "\0"s, "linked"s, "u1/"s,
                          std::string(5000, 'x'), tree.path().native()}) {
    CAPTURE(uid);
    CHECK(inferred(tree, with_uid(uid)).volumes.empty());
  }
}

}  // namespace evictd::agent::inferred_volumes_test
