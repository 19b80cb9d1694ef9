#include "node/filesystem.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "fixture/mount.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "os/file_descriptor.hpp"
#include "support/skip.hpp"

namespace evictd::node::filesystem_test {
namespace {

using fixture::error_of;
using fixture::file;
using fixture::Mount;
using fixture::Tree;
using fixture::value_of;

void make_subvolume(const Tree& tree, std::string_view name) {
  const os::FileDescriptor directory{::open(tree.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  btrfs_ioctl_vol_args arguments{};
  std::ranges::copy(name, arguments.name);
  REQUIRE(::ioctl(directory.get(), BTRFS_IOC_SUBVOL_CREATE, &arguments) == 0);
}

dev_t stat_device(const std::filesystem::path& path) {
  struct stat file{};
  REQUIRE(::stat(path.c_str(), &file) == 0);
  return file.st_dev;
}

}  // namespace

TEST_CASE("any path of a file system tells of the whole of it") {
  const Tree tree{file("f", "text")};
  const auto by_directory = value_of(read_filesystem(tree.path()));
  const auto by_file = value_of(read_filesystem(tree.path("f")));
  CHECK(by_directory.capacity > 0);
  CHECK(by_directory.available <= by_directory.capacity);
  CHECK(by_directory.capacity == by_file.capacity);
  CHECK(by_directory.device == by_file.device);
}

TEST_CASE("a file system that is not there is an error with its path") {
  const Tree tree;
  const auto reading = read_filesystem(tree.path("none"));
  CHECK(error_of(reading) == tree.path("none").native() + ": No such file or directory");
  CHECK(reading.error().is_gone());
}

TEST_CASE("a tmpfs has the size and the inodes it was mounted with, and is a device of its own") {
  SKIP_IF(Mount::impossible());
  const Tree tree;
  const auto mount = Mount::tmpfs(tree.path(), "size=1m,nr_inodes=100");
  const auto empty = value_of(read_filesystem(tree.path()));
  CHECK(empty.capacity == 1 << 20);
  CHECK(empty.available == 1 << 20);
  REQUIRE(empty.inodes);
  CHECK(empty.inodes->total == 100);
  CHECK(empty.device != value_of(read_filesystem(tree.path().parent_path())).device);

  tree.add("", file("f", std::string(256 << 10, 'x')));
  const auto filled = value_of(read_filesystem(tree.path()));
  CHECK(filled.available == empty.available - (256 << 10));
  CHECK(filled.capacity == empty.capacity);
  CHECK(filled.inodes->free == empty.inodes->free - 1);
}

TEST_CASE("a tmpfs without a bound on its inodes observes none") {
  SKIP_IF(Mount::impossible());
  const Tree tree;
  const auto mount = Mount::tmpfs(tree.path(), "size=1m,nr_inodes=0");
  CHECK_FALSE(value_of(read_filesystem(tree.path())).inodes);
}

TEST_CASE("what an ext4 keeps for root is not available") {
  SKIP_IF(Mount::impossible());
  const Tree tree{fixture::dir("mounted")};
  const auto mount = Mount::ext4(tree.path("image"), 16 << 20, tree.path("mounted"));
  const auto reading = value_of(read_filesystem(tree.path("mounted")));
  CHECK(reading.capacity > 8 << 20);
  CHECK(reading.available < reading.capacity - reading.capacity / 25);  // 5% of the file system
  REQUIRE(reading.inodes);
  CHECK(reading.inodes->free < reading.inodes->total);
}

TEST_CASE("all subvolumes of a btrfs, which share its space, are one file system") {
  SKIP_IF(Mount::impossible_btrfs());
  const Tree images;
  const Tree tree;
  const Tree other;
  const auto mount = Mount::btrfs(images.path("one"), 128 << 20, tree.path());
  const auto another = Mount::btrfs(images.path("another"), 128 << 20, other.path());
  make_subvolume(tree, "kubelet");
  make_subvolume(tree, "containerd");
  REQUIRE(stat_device(tree.path("kubelet")) != stat_device(tree.path("containerd")));
  const auto device = value_of(read_filesystem(tree.path("kubelet"))).device;
  CHECK(value_of(read_filesystem(tree.path("containerd"))).device == device);
  CHECK(value_of(read_filesystem(tree.path())).device == device);
  CHECK(value_of(read_filesystem(other.path())).device != device);
}

}  // namespace evictd::node::filesystem_test
