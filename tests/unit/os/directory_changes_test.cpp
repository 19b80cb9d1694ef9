#include "os/directory_changes.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "fixture/few_descriptors.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::os::directory_changes_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

}  // namespace

TEST_CASE("what comes and what goes is a change, once") {
  const Tree tree{{dir("watched", {dir("a", {dir("below")}), file("f", "1\n")}), dir("empty"), dir("other")}};
  DirectoryChanges changes;
  REQUIRE(changes.watch(value_of(Directory::open(tree.path("watched")))));
  REQUIRE(changes.watch(value_of(Directory::open(tree.path("empty")))));
  CHECK_FALSE(changes.any());

  SUBCASE("a directory comes") { std::filesystem::create_directory(tree.path("watched/b")); }
  SUBCASE("one goes") { std::filesystem::remove_all(tree.path("watched/a")); }
  SUBCASE("one is taken in") { std::filesystem::rename(tree.path("other"), tree.path("watched/b")); }
  SUBCASE("one gets another name") { std::filesystem::rename(tree.path("watched/a"), tree.path("watched/b")); }
  SUBCASE("it goes itself") { std::filesystem::remove(tree.path("empty")); }
  SUBCASE("it gets another name") { std::filesystem::rename(tree.path("watched"), tree.path("renamed")); }
  SUBCASE("more than the kernel remembers") {
    for (int i = 0; i < 20'000; ++i) {
      std::filesystem::create_directory(tree.path("watched/b"));
      std::filesystem::remove(tree.path("watched/b"));
    }
  }
  CHECK(changes.any());
  CHECK_FALSE(changes.any());
}

TEST_CASE("what is in a directory of a directory, and what a file holds, is no change") {
  const Tree tree{{dir("watched", {dir("a"), file("f", "1\n")})}};
  DirectoryChanges changes;
  const auto watched = value_of(Directory::open(tree.path("watched")));
  REQUIRE(changes.watch(watched));
  REQUIRE(changes.watch(watched));
  std::filesystem::create_directory(tree.path("watched/a/b"));
  tree.write("watched/f", "2\n");
  CHECK_FALSE(changes.any());
}

TEST_CASE("what is not watched anew is watched no longer, which is no change") {
  const Tree tree{{dir("a"), dir("b")}};
  const auto a = value_of(Directory::open(tree.path("a")));
  DirectoryChanges changes;
  REQUIRE(changes.watch(a));
  REQUIRE(changes.watch(value_of(Directory::open(tree.path("b")))));
  changes.keep_rewatched();
  CHECK_FALSE(changes.any());
  REQUIRE(changes.watch(a));
  changes.keep_rewatched();
  CHECK_FALSE(changes.any());
  std::filesystem::create_directory(tree.path("b/c"));
  CHECK_FALSE(changes.any());
  std::filesystem::create_directory(tree.path("a/c"));
  CHECK(changes.any());
}

TEST_CASE("without an inotify instance nothing is watched, and anything may have changed") {
  const Tree tree{{dir("watched")}};
  const auto watched = value_of(Directory::open(tree.path("watched")));
  auto changes = [] {
    const fixture::NoDescriptors none;
    return DirectoryChanges();
  }();
  CHECK_FALSE(changes.watch(watched));
  CHECK(changes.any());
}

}  // namespace evictd::os::directory_changes_test
