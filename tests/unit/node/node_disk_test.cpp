#include "node/node_disk.hpp"

#include <doctest/doctest.h>

#include "fixture/mount.hpp"
#include "fixture/tree.hpp"

namespace evictd::node {
namespace {

using core::Signal;
using fixture::dir;
using fixture::Mount;
using fixture::Tree;

const core::Instant now{std::chrono::seconds(100)};

config::NodeSettings rooted_at(const std::filesystem::path& path) {
  config::NodeSettings settings;
  settings.kubelet_root = path.native();
  return settings;
}

}  // namespace

TEST_CASE("as long as the runtime named no file system, images and layers lie on nodefs") {
  const Tree tree;
  NodeDisk disk(rooted_at(tree.path()));
  core::Observations seen;
  CHECK(disk.observe(now, seen).empty());
  REQUIRE(seen[Signal::NodefsAvailable]);
  CHECK(seen[Signal::NodefsAvailable]->capacity > 0);
  CHECK(seen[Signal::NodefsAvailable]->time == now);
  CHECK(seen[Signal::ImagefsAvailable] == seen[Signal::NodefsAvailable]);
  CHECK(seen[Signal::ContainerfsAvailable] == seen[Signal::NodefsAvailable]);
  CHECK(seen[Signal::ImagefsInodesFree] == seen[Signal::NodefsInodesFree]);
  CHECK_FALSE(disk.layout().dedicated_imagefs);
}

TEST_CASE("signals that are not of disks are left as they are") {
  const Tree tree;
  core::Observations seen;
  seen[Signal::MemoryAvailable] = core::Observation{.available = 1, .capacity = 2};
  CHECK(NodeDisk(rooted_at(tree.path())).observe(now, seen).empty());
  CHECK(seen[Signal::MemoryAvailable] == core::Observation{.available = 1, .capacity = 2});
}

TEST_CASE("where the kubelet's directory does not exist, its nearest parent stands for it") {
  const Tree tree;
  core::Observations seen;
  CHECK(NodeDisk(rooted_at(tree.path("not/yet/there"))).observe(now, seen).empty());
  CHECK(seen[Signal::NodefsAvailable]);
}

TEST_CASE("a kubelet's directory that cannot be one is an error that names the key") {
  const Tree tree{fixture::file("f", "")};
  core::Observations seen;
  const auto errors = NodeDisk(rooted_at(tree.path("f/below"))).observe(now, seen);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].message == "nodefs (node.kubeletRoot): " + tree.path("f/below").native() + ": Not a directory");
  CHECK_FALSE(seen[Signal::NodefsAvailable]);
}

TEST_CASE("an imagefs that cannot be read loses its observations, and nodefs keeps its own") {
  const Tree tree;
  NodeDisk disk(rooted_at(tree.path()));
  core::Observations seen;
  CHECK(disk.observe(now, seen).empty());
  disk.set_imagefs(tree.path("gone"));
  const auto errors = disk.observe(now, seen);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].message.starts_with("imagefs"));
  CHECK(seen[Signal::NodefsAvailable]);
  CHECK_FALSE(seen[Signal::ImagefsAvailable]);
  CHECK_FALSE(seen[Signal::ContainerfsInodesFree]);
}

TEST_CASE("images on the same device are not a dedicated file system") {
  const Tree tree{std::vector{dir("kubelet"), dir("containerd")}};
  NodeDisk disk(rooted_at(tree.path("kubelet")));
  disk.set_imagefs(tree.path("containerd"));
  core::Observations seen;
  CHECK(disk.observe(now, seen).empty());
  CHECK(disk.layout() == core::FilesystemLayout{});
}

TEST_CASE("images on another device are, and their numbers are that device's" * doctest::skip(Mount::impossible())) {
  const Tree tree{std::vector{dir("kubelet"), dir("containerd")}};
  const auto nodefs = Mount::tmpfs(tree.path("kubelet"), "size=1m,nr_inodes=100");
  const auto imagefs = Mount::tmpfs(tree.path("containerd"), "size=2m,nr_inodes=200");
  NodeDisk disk(rooted_at(tree.path("kubelet")));
  disk.set_imagefs(tree.path("containerd"));
  core::Observations seen;
  CHECK(disk.observe(now, seen).empty());
  CHECK(disk.layout() == core::FilesystemLayout{.dedicated_imagefs = true});
  CHECK(seen[Signal::NodefsAvailable]->capacity == 1 << 20);
  CHECK(seen[Signal::NodefsInodesFree]->capacity == 100);
  CHECK(seen[Signal::ImagefsAvailable]->capacity == 2 << 20);
  CHECK(seen[Signal::ContainerfsInodesFree]->capacity == 200);
}

TEST_CASE("a file system mounted later at the kubelet's directory is the one observed" *
          doctest::skip(Mount::impossible())) {
  const Tree tree;
  NodeDisk disk(rooted_at(tree.path("kubelet")));
  core::Observations seen;
  CHECK(disk.observe(now, seen).empty());
  tree.add("", dir("kubelet"));
  const auto mount = Mount::tmpfs(tree.path("kubelet"), "size=1m");
  CHECK(disk.observe(now, seen).empty());
  CHECK(seen[Signal::NodefsAvailable]->capacity == 1 << 20);
}

TEST_CASE("between observations each disk signal is read alone") {
  const Tree tree;
  NodeDisk disk(rooted_at(tree.path("not/yet/there")));
  for (const auto signal : {Signal::NodefsAvailable, Signal::ImagefsAvailable, Signal::ContainerfsAvailable})
    CHECK(disk.available(signal).value_or(0) > 0);
  core::Observations seen;
  CHECK(disk.observe(now, seen).empty());
  for (const auto signal : {Signal::NodefsInodesFree, Signal::ImagefsInodesFree, Signal::ContainerfsInodesFree})
    CHECK(disk.available(signal).has_value() == seen[signal].has_value());
  disk.set_imagefs(tree.path("gone"));
  CHECK(disk.available(Signal::NodefsAvailable));
  CHECK_FALSE(disk.available(Signal::ImagefsAvailable));
  CHECK_FALSE(disk.available(Signal::ContainerfsInodesFree));
}

}  // namespace evictd::node
