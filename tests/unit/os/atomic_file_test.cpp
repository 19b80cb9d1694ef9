#include "os/atomic_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "config/yaml.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::os::atomic_file_test {

using fixture::error_of;
using fixture::value_of;

TEST_CASE("a file is replaced as a whole, its directory made, and nobody else may read it") {
  const fixture::Tree tree;
  const auto path = tree.path("var/lib/state.json");
  CHECK(write_atomically(path, "one").has_value());
  CHECK(value_of(config::read_text_file(path)) == "one");
  CHECK(write_atomically(path, "").has_value());
  CHECK(value_of(config::read_text_file(path)).empty());
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK_FALSE(std::filesystem::exists(path.native() + ".new"));
}

TEST_CASE("who has the old file open keeps reading the old content") {
  const fixture::Tree tree{fixture::file("state", "old")};
  struct stat before{};
  struct stat after{};
  REQUIRE(::stat(tree.path("state").c_str(), &before) == 0);
  CHECK(write_atomically(tree.path("state"), "new").has_value());
  REQUIRE(::stat(tree.path("state").c_str(), &after) == 0);
  CHECK(before.st_ino != after.st_ino);
}

TEST_CASE("what cannot be written is told, and the old content stays") {
  const fixture::Tree tree{{fixture::file("plain", "x"), fixture::dir("state", {fixture::file("inside", "y")})}};
  CHECK(error_of(write_atomically(tree.path("plain/state"), "z")) ==
        tree.path("plain/state").native() + ": cannot be written: Not a directory");
  // A directory with something in it cannot be replaced by a file.
  CHECK(error_of(write_atomically(tree.path("state"), "z")) ==
        tree.path("state").native() + ": cannot be written: Is a directory");
  CHECK(value_of(config::read_text_file(tree.path("state/inside"))) == "y");
  CHECK_FALSE(std::filesystem::exists(tree.path("state.new")));
}

}  // namespace evictd::os::atomic_file_test
