#include "node/memory_high.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::node::memory_high_test {

using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

TEST_CASE("memory.high is a number or max, and anything else is an error that names the file") {
  const Tree tree{{file("memory.high", "max\n")}};
  const auto cgroup = value_of(os::Directory::open(tree.path()));
  CHECK_FALSE(value_of(read_memory_high(cgroup)).has_value());
  tree.write("memory.high", "4096\n");
  CHECK(value_of(read_memory_high(cgroup)) == 4096);
  tree.write("memory.high", "much\n");
  CHECK(error_of(read_memory_high(cgroup)) == tree.path("memory.high").native() + ": \"much\" is not a limit");
  CHECK(write_memory_high(cgroup, 8192).has_value());
  CHECK(value_of(read_memory_high(cgroup)) == 8192);
  CHECK(write_memory_high(cgroup, std::nullopt).has_value());
  CHECK_FALSE(value_of(read_memory_high(cgroup)).has_value());
  tree.remove("memory.high");
  CHECK(read_memory_high(cgroup).error().is_gone());
  CHECK(write_memory_high(cgroup, 4096).error().is_gone());
}

TEST_CASE("a mark comes back as it was written, and what is no mark is none") {
  for (const auto& mark : {FenceMark{}, FenceMark{.now = 4096}, FenceMark{.before = 4096, .now = 8192}})
    CHECK(FenceMark::parse(mark.text()) == mark);
  CHECK(FenceMark{.now = 4096}.text() == "max 4096");
  for (const auto* text : {"", "max", "max ", " 1", "1 2 3", "-1 2", "a b"})
    CHECK_FALSE(FenceMark::parse(text).has_value());
  CHECK(FenceMark{.before = 4096, .now = 8192}.covers(4096));
  CHECK_FALSE(FenceMark{.before = 4096}.covers(8192));
}

TEST_CASE("the mark is kept at the directory and can be removed twice") {
  const Tree tree;
  const auto cgroup = value_of(os::Directory::open(tree.path()));
  CHECK_FALSE(value_of(read_fence_mark(cgroup)).has_value());
  CHECK(write_fence_mark(cgroup, {.before = 1, .now = 2}).has_value());
  CHECK(value_of(read_fence_mark(cgroup)) == FenceMark{.before = 1, .now = 2});
  CHECK(remove_fence_mark(cgroup).has_value());
  CHECK(remove_fence_mark(cgroup).has_value());
  CHECK_FALSE(value_of(read_fence_mark(cgroup)).has_value());
}

}  // namespace evictd::node::memory_high_test
