#include "node/cgroup.hpp"

#include <doctest/doctest.h>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::node::cgroup_test {
namespace {

using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

CgroupHierarchy detect(const Tree& tree) { return value_of(CgroupHierarchy::detect(tree.path("cgroup"))); }

}  // namespace

TEST_CASE("a node with a memory directory of cgroup v1 is v1, pids being a tree of its own") {
  const Tree tree{fixture::v1_node({}, {}, {dir("lab")}, {dir("lab")})};
  const auto hierarchy = detect(tree);
  CHECK(hierarchy.version() == CgroupVersion::v1);
  CHECK(hierarchy.root().path() == tree.path("cgroup/memory").native());
  CHECK(value_of(hierarchy.memory("/lab")).path() == tree.path("cgroup/memory/lab").native());
  CHECK(value_of(hierarchy.pids("/lab")).path() == tree.path("cgroup/pids/lab").native());
  CHECK(value_of(hierarchy.memory("/")).path() == tree.path("cgroup/memory").native());
}

TEST_CASE("a node whose unified tree has the memory controller is v2, with one tree for all") {
  const Tree tree{fixture::v2_node({}, 0, {dir("lab")})};
  const auto hierarchy = detect(tree);
  CHECK(hierarchy.version() == CgroupVersion::v2);
  CHECK(value_of(hierarchy.memory("/lab")).path() == tree.path("cgroup/lab").native());
  CHECK(value_of(hierarchy.pids("/lab")).path() == tree.path("cgroup/lab").native());
}

TEST_CASE("on a hybrid node the tree that has the memory controller counts") {
  const auto unified = [](const char* controllers) {
    return dir("unified", {file("cgroup.controllers", controllers)});
  };
  const Tree v1{dir("cgroup", {unified("hugetlb\n"), dir("memory", fixture::v1_memory({})), dir("pids")})};
  CHECK(detect(v1).version() == CgroupVersion::v1);

  const Tree v2{dir("cgroup", {unified("cpu memory\n"), dir("pids")})};
  CHECK(detect(v2).version() == CgroupVersion::v2);
  CHECK(detect(v2).root().path() == v2.path("cgroup/unified").native());
  CHECK(value_of(detect(v2).pids("/")).path() == v2.path("cgroup/pids").native());

  const Tree both{dir("cgroup", {unified("memory pids\n"), dir("pids")})};
  CHECK(value_of(detect(both).pids("/")).path() == both.path("cgroup/unified").native());
}

TEST_CASE("a node without a memory controller is told what is missing") {
  const std::string hint =
      ": no memory controller, neither of cgroup v2 (\"memory\" in cgroup.controllers) nor of v1 "
      "(memory/memory.usage_in_bytes); "
      "mount the cgroup hierarchy or boot with cgroup_enable=memory";
  for (const auto& entries : {std::vector{file("cgroup.controllers", "cpu memory_recursiveprot pids\n")},
                              std::vector{dir("cpu")}, std::vector{dir("memory")}, std::vector<fixture::Entry>{}}) {
    const Tree tree{dir("cgroup", entries)};
    CHECK(error_of(CgroupHierarchy::detect(tree.path("cgroup"))) == tree.path("cgroup").native() + hint);
  }
  CHECK(error_of(CgroupHierarchy::detect("/nowhere")) == "/nowhere: No such file or directory");
}

TEST_CASE("a cgroup that does not exist is named with the hierarchy it is missing from") {
  const Tree tree{fixture::v1_node({}, {})};
  const auto hierarchy = detect(tree);
  const auto missing = hierarchy.memory("/foo");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().is_gone());
  CHECK(missing.error().message == "no cgroup \"/foo\" in " + tree.path("cgroup/memory").native());
}

TEST_CASE("without a pids controller its cgroups are gone") {
  const Tree tree{dir("cgroup", {dir("memory", fixture::v1_memory({}, {dir("lab")}))})};
  const auto pids = detect(tree).pids("/lab");
  REQUIRE_FALSE(pids);
  CHECK(pids.error().is_gone());
}

}  // namespace evictd::node::cgroup_test
