#include "node/memory_cgroup.hpp"

#include <doctest/doctest.h>

#include "fixture/node_tree.hpp"
#include "fixture/pods.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::node::memory_cgroup_test {
namespace {

using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;
using fixture::operator""_MiB;

/// A fake node whose cgroups can be opened.
struct Node {
  explicit Node(const std::vector<fixture::Entry>& entries) : tree(entries) {}

  Tree tree;
  CgroupHierarchy hierarchy = value_of(CgroupHierarchy::detect(tree.path("cgroup")));
  os::Directory proc = value_of(os::Directory::open(tree.path("proc")));

  [[nodiscard]] os::FileResult<MemoryCgroup> open(std::string_view cgroup,
                                                  RootUsage root_usage = RootUsage::AnonAndFile) const {
    return MemoryCgroup::open(hierarchy, cgroup, root_usage, proc);
  }
};

}  // namespace

TEST_CASE("the working set is what is used less the inactive file cache, never below zero") {
  CHECK(MemoryReading{.usage = 100, .inactive_file = 30}.working_set() == 70);
  CHECK(MemoryReading{.usage = 30, .inactive_file = 100}.working_set() == 0);
}

TEST_CASE("cgroup v1: usage, the total of inactive files, and the limit") {
  const Node node{
      fixture::v1_node({}, {}, {dir("lab", fixture::v1_memory({.usage = 500, .inactive_file = 200, .limit = 4096}))})};
  const auto lab = value_of(node.open("/lab"));
  CHECK(value_of(lab.usage()) == 500);
  CHECK(value_of(lab.working_set()) == 300);
  CHECK(value_of(lab.read()) == MemoryReading{.usage = 500, .inactive_file = 200, .limit = 4096});
  node.tree.write("cgroup/memory/lab/memory.usage_in_bytes", "600\n");
  CHECK(value_of(lab.usage()) == 600);
}

TEST_CASE("cgroup v1 shows an enormous number where there is no limit") {
  const Node node{fixture::v1_node({}, {.usage = 5})};
  const auto root = value_of(node.open("/"));
  CHECK_FALSE(value_of(root.read()).limit);
  node.tree.write("cgroup/memory/memory.limit_in_bytes", "9223372036854710272\n");  // pages of 64 KiB
  CHECK_FALSE(value_of(root.read()).limit);
}

TEST_CASE("cgroup v2: current, inactive_file and max") {
  const Node node{fixture::v2_node({}, 0,
                                   {dir("lab", fixture::v2_memory({.usage = 500, .inactive_file = 200, .limit = 4096})),
                                    dir("free", fixture::v2_memory({.usage = 1, .inactive_file = 2}))})};
  CHECK(value_of(value_of(node.open("/lab")).read()) ==
        MemoryReading{.usage = 500, .inactive_file = 200, .limit = 4096});
  CHECK(value_of(value_of(node.open("/free")).read()) == MemoryReading{.usage = 1, .inactive_file = 2});
  CHECK(value_of(value_of(node.open("/free")).working_set()) == 0);
}

TEST_CASE("the root of cgroup v2 uses its anonymous memory and its files, as kubelets from 1.32 on have it") {
  // Slab and preallocated huge pages are not free, and are no pod's either.
  fixture::Machine machine{.total = 8_MiB, .free = 2_MiB, .available = 4_MiB, .anonymous = 1_MiB, .file = 3_MiB};
  const Node node{fixture::v2_node(machine, 2_MiB)};
  const auto root = value_of(node.open("/"));
  CHECK(value_of(root.usage()) == 4_MiB);
  CHECK(value_of(root.read()) == MemoryReading{.usage = 4_MiB, .inactive_file = 2_MiB});
  CHECK(value_of(root.working_set()) == 2_MiB);
  node.tree.write("proc/meminfo", "MemTotal: 8 kB\nMemFree: 2 kB\n");
  CHECK(error_of(root.usage()) == node.tree.path("proc/meminfo").native() + ": no number behind \"Buffers:\"");
}

TEST_CASE("the root is counted by the machine's own counters, whatever its memory.stat has not added up yet") {
  fixture::Machine machine{.total = 8_MiB, .anonymous = 1_MiB, .file = 3_MiB, .inactive_file = 1_MiB};
  SUBCASE("v2") {
    const Node node{fixture::v2_node(machine, 1_MiB)};
    const auto root = value_of(node.open("/"));
    machine.anonymous = 3_MiB;
    machine.inactive_file = 2_MiB;
    node.tree.write("proc/meminfo", fixture::meminfo(machine));
    CHECK(value_of(root.usage()) == 6_MiB);
    CHECK(value_of(root.read()) == MemoryReading{.usage = 6_MiB, .inactive_file = 2_MiB});
  }
  SUBCASE("v1, which has a usage of its own") {
    Node node{fixture::v1_node(machine, {.usage = 5_MiB, .inactive_file = 3_MiB})};
    CHECK(value_of(value_of(node.open("/")).read()) == MemoryReading{.usage = 5_MiB, .inactive_file = 3_MiB});
    node.tree.add("cgroup/memory", file("release_agent", "\n"));  // else it is a cgroup namespace's
    CHECK(value_of(value_of(node.open("/")).read()) == MemoryReading{.usage = 5_MiB, .inactive_file = 1_MiB});
  }
}

TEST_CASE("the root of cgroup v2 uses what the machine has not free, as older kubelets have it") {
  const Node node{fixture::v2_node({.total = 8_MiB, .free = 2_MiB, .available = 4_MiB}, 1_MiB)};
  const auto root = value_of(node.open("/", RootUsage::NotFree));
  CHECK(value_of(root.usage()) == 6_MiB);
  CHECK(value_of(root.read()) == MemoryReading{.usage = 6_MiB, .inactive_file = 1_MiB});
}

TEST_CASE("the root of a cgroup namespace has numbers of its own") {
  Node node{fixture::v2_node({.total = 8192, .free = 2048, .available = 4096}, 1000)};
  node.tree.add("cgroup", file("memory.current", "77\n"));
  node.tree.add("cgroup", file("memory.max", "100\n"));
  CHECK(value_of(value_of(node.open("/")).read()) == MemoryReading{.usage = 77, .inactive_file = 1000, .limit = 100});
}

TEST_CASE("without the limit a reading has none") {
  const Node node{
      fixture::v1_node({}, {}, {dir("pod", fixture::v1_memory({.usage = 5, .inactive_file = 1, .limit = 10}))})};
  const auto pod = value_of(MemoryCgroup::open_without_limit(node.hierarchy, "/pod"));
  CHECK(value_of(pod.read()) == MemoryReading{.usage = 5, .inactive_file = 1});
}

TEST_CASE("a cgroup that does not exist is gone") {
  const Node node{fixture::v1_node({}, {})};
  const auto missing = node.open("/foo");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().is_gone());
  CHECK(MemoryCgroup::open_without_limit(node.hierarchy, "/foo").error().is_gone());
}

TEST_CASE("a cgroup v2 without the memory controller is told how to get it") {
  const Node node{fixture::v2_node({}, 0, {dir("lab", {file("cgroup.procs", "")})})};
  const auto lab = node.open("/lab");
  REQUIRE_FALSE(lab);
  CHECK_FALSE(lab.error().is_gone());
  CHECK(lab.error().message ==
        node.tree.path("cgroup/lab").native() +
            ": the memory controller is not enabled here: write \"+memory\" to cgroup.subtree_control "
            "of the cgroup above");
}

TEST_CASE("garbage is named with its file") {
  const Node node{fixture::v1_node({}, {.usage = 5, .inactive_file = 1})};
  const auto root = value_of(node.open("/"));
  const auto path = node.tree.path("cgroup/memory").native();
  node.tree.write("cgroup/memory/memory.limit_in_bytes", "much\n");
  CHECK(error_of(root.read()) == path + "/memory.limit_in_bytes: \"much\" is not a limit");
  node.tree.write("cgroup/memory/memory.stat", "total_cache 5\n");
  CHECK(error_of(root.read()) == path + "/memory.stat: no number behind \"total_inactive_file\"");
  CHECK(error_of(root.working_set()) == path + "/memory.stat: no number behind \"total_inactive_file\"");
  node.tree.write("cgroup/memory/memory.usage_in_bytes", "-5\n");
  CHECK(error_of(root.read()) == path + "/memory.usage_in_bytes: \"-5\" is not a number");
}

}  // namespace evictd::node::memory_cgroup_test
