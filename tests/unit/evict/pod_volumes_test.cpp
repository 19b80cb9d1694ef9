#include "evict/pod_volumes.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>

#include "evict/tree_removal.hpp"
#include "fixture/mount.hpp"
#include "fixture/tree.hpp"
#include "os/file_descriptor.hpp"
#include "os/now.hpp"
#include "support/skip.hpp"

namespace evictd::evict::pod_volumes_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Mount;
using fixture::Tree;
using os::FileDescriptor;

/// A node with two pods, of which u1 has two emptyDirs and a volume of another kind.
struct Volumes {
  Tree tree{
      {dir("pods", {dir("u1", {file("etc-hosts", ""),
                               dir("volumes", {dir("kubernetes.io~empty-dir",
                                                   {dir("cache", {file("a", "1"), dir("sub", {file("b", "2")})}),
                                                    dir("tmp", {file("c", "3")})}),
                                               dir("kubernetes.io~configmap", {dir("conf", {file("d", "4")})})})}),
                    dir("u2", {dir("volumes", {dir("kubernetes.io~empty-dir", {dir("cache", {file("e", "5")})})})})}),
       dir("other", {file("keep", "precious")})}};

  [[nodiscard]] static std::string empty_dirs(const std::string& uid = "u1") {
    return "pods/" + uid + "/volumes/kubernetes.io~empty-dir";
  }
  [[nodiscard]] bool has(const std::string& path) const { return fs::exists(fs::symlink_status(tree.path(path))); }
  [[nodiscard]] Removed remove(const std::string& uid = "u1") const {
    return remove_empty_dirs(tree.path(), uid, os::now() + 1min);
  }
  [[nodiscard]] bool is_intact_beside() const {
    return has("other/keep") && has(empty_dirs("u2") + "/cache/e") && has("pods/u1/etc-hosts") &&
           has("pods/u1/volumes/kubernetes.io~configmap/conf/d");
  }
};

/// As deep as no path can name.
void make_deep(const fs::path& top, int levels) {
  os::FileDescriptor directory{::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  for (int level = 0; level < levels; ++level) {
    REQUIRE(::mkdirat(directory.get(), "d", 0755) == 0);
    directory = os::FileDescriptor{::openat(directory.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    REQUIRE(static_cast<bool>(directory));
  }
  os::FileDescriptor{::openat(directory.get(), "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
}

}  // namespace

TEST_CASE("a pod's emptyDirs go with all that is in them, and nothing else does") {
  const Volumes volumes;
  const auto removed = volumes.remove();
  CHECK(removed.files == 3);
  CHECK_FALSE(removed.error.has_value());
  CHECK_FALSE(volumes.has(Volumes::empty_dirs() + "/cache"));
  CHECK_FALSE(volumes.has(Volumes::empty_dirs() + "/tmp"));
  CHECK(volumes.is_intact_beside());
  CHECK_FALSE(volumes.remove().error.has_value());
}

TEST_CASE("a pod without volumes, or without a directory, is no error; a uid that leads elsewhere is") {
  const Volumes volumes;
  fs::create_directory(volumes.tree.path("pods/u3"));
  for (const auto* uid : {"u3", "u4"}) CHECK_FALSE(volumes.remove(uid).error.has_value());
  for (const auto* uid : {"", ".", "..", "../pods/u1", "u1/"}) {
    CAPTURE(uid);
    CHECK(volumes.remove(uid).error.has_value());
  }
  CHECK_FALSE(remove_empty_dirs(volumes.tree.path("none"), "u1", os::now() + 1min).error.has_value());
  CHECK(volumes.has(Volumes::empty_dirs() + "/cache/a"));
  CHECK(volumes.is_intact_beside());
}

TEST_CASE("a tree that is deeper than a path can name goes") {
  const Volumes volumes;
  make_deep(volumes.tree.path(Volumes::empty_dirs() + "/cache"), 3000);
  const auto removed = volumes.remove();
  CHECK(removed.files == 4);
  CHECK_FALSE(removed.error.has_value());
  CHECK_FALSE(volumes.has(Volumes::empty_dirs() + "/cache"));
  CHECK(volumes.is_intact_beside());
}

TEST_CASE("no link is followed: one in a volume goes itself, one on the way leads nowhere") {
  const Volumes volumes;
  SUBCASE("below") {
    fs::create_directory_symlink(volumes.tree.path("other"), volumes.tree.path(Volumes::empty_dirs() + "/link"));
    fs::create_symlink(volumes.tree.path("other/keep"), volumes.tree.path(Volumes::empty_dirs() + "/cache/link"));
    CHECK_FALSE(volumes.remove().error.has_value());
    CHECK_FALSE(volumes.has(Volumes::empty_dirs() + "/link"));
  }
  SUBCASE("the volumes") {
    volumes.tree.add("other", dir("kubernetes.io~empty-dir", {dir("x", {file("y", "precious")})}));
    fs::create_directory(volumes.tree.path("pods/u3"));
    fs::create_directory_symlink(volumes.tree.path("other"), volumes.tree.path("pods/u3/volumes"));
    CHECK(volumes.remove("u3").error.has_value());
    CHECK(volumes.has("other/kubernetes.io~empty-dir/x/y"));
  }
  SUBCASE("the pod") {
    fs::create_directory_symlink(volumes.tree.path("pods/u1"), volumes.tree.path("pods/u3"));
    CHECK(volumes.remove("u3").error.has_value());
    CHECK(volumes.has(Volumes::empty_dirs() + "/cache/a"));
  }
  CHECK(volumes.is_intact_beside());
}

TEST_CASE("what is mounted in a volume, or is one, stays, and the others go") {
  SKIP_IF(Mount::impossible());
  const Volumes volumes;
  const auto is = [&](const std::string& below) {
    fs::create_directories(volumes.tree.path(Volumes::empty_dirs() + below));
    const auto mount = Mount::bind(volumes.tree.path("other"), volumes.tree.path(Volumes::empty_dirs() + below));
    const auto removed = volumes.remove();
    REQUIRE(removed.error.has_value());
    CHECK(removed.error->code == EXDEV);
    CHECK(removed.error->message.find("something is mounted there") != std::string::npos);
    CHECK(volumes.has(Volumes::empty_dirs() + below + "/keep"));
    CHECK_FALSE(volumes.has(Volumes::empty_dirs() + "/tmp"));
  };
  SUBCASE("in one") { is("/cache/mounted"); }
  SUBCASE("one of them") { is("/memory"); }
  CHECK(volumes.is_intact_beside());
}

TEST_CASE("what there is no time for goes with the next call") {
  const Volumes volumes;
  const auto removed = remove_empty_dirs(volumes.tree.path(), "u1", os::now() - 1s);
  REQUIRE(removed.error.has_value());
  CHECK(removed.error->code == ETIME);
  CHECK(removed.out_of_time);
  CHECK(volumes.has(Volumes::empty_dirs() + "/cache/a"));
  CHECK_FALSE(volumes.remove().error.has_value());
  CHECK_FALSE(volumes.has(Volumes::empty_dirs() + "/cache"));
}

TEST_CASE("that there was no time is told beside what stood in the way before") {
  const Volumes volumes;
  Removed removed{.error = os::system_error(EXDEV, "mounted")};
  const FileDescriptor directory{
      ::open(volumes.tree.path(Volumes::empty_dirs()).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  TreeRemoval{removed, os::now() - 1s}.clear(directory.get(), "volumes");
  CHECK(removed.out_of_time);
  REQUIRE(removed.error.has_value());
  CHECK(removed.error->code == EXDEV);
}

TEST_CASE("many files go, in one listing or in several") {
  const Volumes volumes;
  constexpr int many = 5000;
  for (int number = 0; number < many; ++number)
    volumes.tree.add(Volumes::empty_dirs() + "/cache", file("f" + std::to_string(number), ""));
  CHECK(volumes.remove().files == many + 3);
  CHECK_FALSE(volumes.has(Volumes::empty_dirs() + "/cache"));
}

}  // namespace evictd::evict::pod_volumes_test
