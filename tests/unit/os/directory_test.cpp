#include "os/directory.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::os::directory_test {
namespace {

using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

/// Root may read everything, so a refusal needs another user for a while.
class AsNobody {
 public:
  AsNobody() { was_root_ = ::geteuid() == 0 && ::seteuid(65534) == 0; }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() {
    if (was_root_) CHECK(::seteuid(0) == 0);
  }

 private:
  bool was_root_ = false;
};

}  // namespace

TEST_CASE("directories and files are reached from a directory that is open") {
  const Tree tree{dir("a", {dir("b", {file("number", "7\n")}), dir("c"), file("text", "x")})};
  const auto top = value_of(Directory::open(tree.path()));
  const auto a = value_of(top.subdirectory("a"));
  CHECK(a.path() == tree.path("a").native());
  CHECK(value_of(a.subdirectories()) == std::vector<std::string>{"b", "c"});
  CHECK(value_of(value_of(a.file("b/number")).read_number()) == 7);
  CHECK(a.has("b/number"));
  CHECK_FALSE(a.has("d"));
  CHECK(value_of(a.subdirectory("")).path() == a.path());
}

TEST_CASE("of a directory as many entries are looked at as may be") {
  const Tree tree{dir("a", {dir("b"), dir("c"), file("text", "x")})};
  const auto list = [&](std::size_t& entries_left) {
    auto a = value_of(Directory::open(tree.path("a")));
    std::vector<std::string> names;
    const bool all = value_of(list_directories(a.take_descriptor(), a.path(), entries_left, names));
    CHECK(all == (names.size() == 2));
    return all;
  };
  std::size_t enough = 5;
  CHECK(list(enough));
  CHECK(enough == 2);
  std::size_t too_few = 1;
  CHECK_FALSE(list(too_few));
  CHECK(too_few == 0);
}

TEST_CASE("the directories of one with more entries than that are not listed") {
  const Tree tree{dir("a", {dir("b"), dir("c"), file("text", "x")})};
  const auto a = value_of(Directory::open(tree.path("a")));
  CHECK(value_of(a.subdirectories_within(3)) == std::vector<std::string>{"b", "c"});
  CHECK_FALSE(value_of(a.subdirectories_within(2)));
}

TEST_CASE("an open directory stays the same tree when its path leads elsewhere") {
  const Tree tree{dir("a", {file("number", "1\n")})};
  const auto a = value_of(Directory::open(tree.path("a")));
  std::filesystem::rename(tree.path("a"), tree.path("moved"));
  tree.add("", dir("a", {file("number", "2\n")}));
  CHECK(value_of(value_of(a.file("number")).read_number()) == 1);
}

TEST_CASE("what is not there is gone, and says so with its path") {
  const Tree tree;
  const auto top = value_of(Directory::open(tree.path()));
  const auto missing = top.subdirectory("a/b");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().is_gone());
  CHECK(missing.error().message == tree.path("a/b").native() + ": No such file or directory");
  CHECK(top.file("x").error().is_gone());
  CHECK(Directory::open("/nowhere").error().message == "/nowhere: No such file or directory");
}

TEST_CASE("a file is no directory") {
  const Tree tree{file("x", "")};
  const auto opened = Directory::open(tree.path("x"));
  REQUIRE_FALSE(opened);
  CHECK_FALSE(opened.error().is_gone());
  CHECK(opened.error().message == tree.path("x").native() + ": Not a directory");
}

TEST_CASE("a refusal tells what to do") {
  const Tree tree{dir("closed", {file("number", "1\n")})};
  REQUIRE(::chmod(tree.path().c_str(), 0755) == 0);
  REQUIRE(::chmod(tree.path("closed").c_str(), 0) == 0);
  const auto message = [&] {
    const AsNobody nobody;
    return error_of(Directory::open(tree.path("closed")));
  }();
  CHECK(::chmod(tree.path("closed").c_str(), 0755) == 0);
  CHECK(message ==
        tree.path("closed").native() + ": Permission denied; run as root, or give evictd's user the right to it");
}

TEST_CASE("listing again and again starts from the beginning and leaks no descriptor") {
  const Tree tree{dir("a")};
  const auto top = value_of(Directory::open(tree.path()));
  const auto first = value_of(top.subdirectory("a")).descriptor();
  for (int i = 0; i < 100; ++i) CHECK(value_of(top.subdirectories()) == std::vector<std::string>{"a"});
  CHECK(value_of(top.subdirectory("a")).descriptor() == first);
}

}  // namespace evictd::os::directory_test
