#include "core/filesystem_usage.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::core::filesystem_usage_test {
namespace {

using enum Signal;
using fixture::empty_dir;
using fixture::volume;
using Kind = Volume::Kind;

constexpr FilesystemLayout single{};
constexpr FilesystemLayout dedicated{.dedicated_imagefs = true};
constexpr FilesystemLayout split{.dedicated_imagefs = true, .split = true};

/// "logs volumes layers": what counts for a signal.
std::string parts(Signal signal, FilesystemLayout layout) {
  const auto found = parts_on(signal, layout);
  return std::string(found.logs ? "logs " : "") + (found.local_volumes ? "volumes " : "") +
         (found.writable_layers ? "layers" : "");
}

/// Each place has an amount of its own, so that a sum tells its parts.
PodUsage usage() {
  PodUsage usage;
  usage.containers = {
      {.name = "x", .rootfs = {.bytes = 1, .inodes = 100'000}, .logs = {.bytes = 10, .inodes = 200'000}},
      {.name = "y", .rootfs = {.bytes = 2}, .logs = {.bytes = 20}}};
  usage.volumes = {
      {"cache", {.bytes = 100, .inodes = 300'000}}, {"host", {.bytes = 1000}}, {"other", {.bytes = 10'000}}};
  return usage;
}

Pod pod() {
  auto pod = fixture::pod("a");
  pod.volumes = {empty_dir("cache"), volume("host", Kind::HostPath), volume("config", Kind::ConfigMap)};
  return pod;
}

}  // namespace

TEST_CASE("on a single file system everything counts for every disk signal") {
  for (const auto signal : {NodefsAvailable, NodefsInodesFree, ImagefsAvailable, ImagefsInodesFree,
                            ContainerfsAvailable, ContainerfsInodesFree})
    CHECK(parts(signal, single) == "logs volumes layers");
}

TEST_CASE("with a dedicated imagefs logs and volumes are on nodefs, layers on imagefs") {
  CHECK(parts(NodefsAvailable, dedicated) == "logs volumes ");
  CHECK(parts(NodefsInodesFree, dedicated) == "logs volumes ");
  for (const auto signal : {ImagefsAvailable, ImagefsInodesFree, ContainerfsAvailable, ContainerfsInodesFree})
    CHECK(parts(signal, dedicated) == "layers");
}

TEST_CASE("with a split, layers are on nodefs and no pod uses anything of imagefs") {
  for (const auto signal : {NodefsAvailable, NodefsInodesFree, ContainerfsAvailable, ContainerfsInodesFree})
    CHECK(parts(signal, split) == "logs volumes layers");
  CHECK(parts(ImagefsAvailable, split).empty());
  CHECK(parts(ImagefsInodesFree, split).empty());
}

TEST_CASE("local volumes are those that take space of the node") {
  CHECK(is_local(empty_dir("v")));
  CHECK(is_local(volume("v", Kind::HostPath)));
  CHECK(is_local(volume("v", Kind::ConfigMap)));
  CHECK(is_local(volume("v", Kind::GitRepo)));
  CHECK_FALSE(is_local(empty_dir("v", "", "Memory")));
  CHECK_FALSE(is_local(empty_dir("v", "", "HugePages")));
  CHECK_FALSE(is_local(volume("v", Kind::Other)));
}

TEST_CASE("usage is summed over containers and over the volumes that the spec names") {
  CHECK(disk_usage(pod(), usage(), {.logs = true, .local_volumes = true, .writable_layers = true}).bytes == 1133);
  CHECK(disk_usage(pod(), usage(), {.logs = true, .local_volumes = true}).bytes == 1130);
  CHECK(disk_usage(pod(), usage(), {.writable_layers = true}).bytes == 3);
  CHECK(disk_usage(pod(), usage(), {}).bytes == 0);
}

TEST_CASE("inodes are summed the same way, and what was not measured counts as none") {
  CHECK(disk_usage(pod(), usage(), {.logs = true, .local_volumes = true, .writable_layers = true}).inodes == 600'000);
  CHECK(disk_usage(pod(), usage(), {.logs = true}).inodes == 200'000);
  CHECK(disk_usage(pod(), {}, {.logs = true, .local_volumes = true, .writable_layers = true}).inodes == 0);
}

}  // namespace evictd::core::filesystem_usage_test
