#include "os/beneath.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>

#include "fixture/mount.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::os::beneath_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Mount;
using fixture::Tree;

using Open = FileDescriptor (*)(int, const std::string&);

/// With openat2, and as behind a sandbox that refuses it.
constexpr std::array<Open, 3> ways{&open_beneath, &open_only_beneath, &open_part_by_part};

/// 0: it was opened.
int error_of(Open open, const Tree& tree, const std::string& relative) {
  const FileDescriptor directory{::open(tree.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  return open(directory.get(), relative) ? 0 : errno;
}

}  // namespace

TEST_CASE("a directory below is opened, however many parts its name has, for listing") {
  const Tree tree{{dir("a", {dir("b", {dir("c", {file("f", "")})})})}};
  for (const auto open : ways) {
    const FileDescriptor directory{::open(tree.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    const auto opened = open(directory.get(), "a/b/c");
    REQUIRE(static_cast<bool>(opened));
    CHECK(::faccessat(opened.get(), "f", F_OK, 0) == 0);
    CHECK((::fcntl(opened.get(), F_GETFL) & O_PATH) == 0);
    CHECK(error_of(open, tree, "a/none") == ENOENT);
    CHECK(error_of(open, tree, "a/b/c/f") == ENOTDIR);
  }
}

TEST_CASE("no part may be a link, or lead out") {
  const Tree tree{{dir("a", {dir("b")}), dir("other", {dir("b")})}};
  std::filesystem::create_directory_symlink(tree.path("other"), tree.path("a/link"));
  for (const auto open : ways) {
    for (const auto* relative : {"a/link", "a/link/b"}) {
      CAPTURE(relative);
      const int code = error_of(open, tree, relative);
      CHECK((code == ELOOP || code == ENOTDIR));
    }
    CHECK(error_of(open, tree, "../other") == EXDEV);
    CHECK(error_of(open, tree, "a/../../other") == EXDEV);
  }
}

TEST_CASE("nothing that is mounted is opened, on the way or at its end") {
  SKIP_IF(Mount::impossible());
  const Tree tree{{dir("a", {dir("mounted")}), dir("other", {dir("b")})}};
  const auto mount = Mount::bind(tree.path("other"), tree.path("a/mounted"));
  for (const auto open : ways)
    for (const auto* relative : {"a/mounted", "a/mounted/b"}) CHECK(error_of(open, tree, relative) == EXDEV);
}

TEST_CASE("a name is one part of a path") {
  for (const auto* name : {"a", "...", ".a", "a b"}) CHECK(is_one_name(name));
  for (const auto* name : {"", ".", "..", "a/b", "/a", "a/"}) CHECK_FALSE(is_one_name(name));
  CHECK_FALSE(is_one_name(std::string_view("a\0b", 3)));
}

}  // namespace evictd::os::beneath_test
