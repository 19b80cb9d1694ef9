#include "node/pod_cgroups.hpp"

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <string>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::node::pod_cgroups_test {
namespace {

using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

fixture::Entry pod(std::string name, const fixture::Memory& memory) {
  return dir(std::move(name), fixture::v1_memory(memory));
}

/// A fake v1 node with two pods.
struct Node {
  Tree tree{fixture::v1_node(
      {}, {}, {dir("kubepods", {pod("podA", {.usage = 100, .inactive_file = 10}), pod("podB", {.usage = 200})})})};
  CgroupHierarchy hierarchy = value_of(CgroupHierarchy::detect(tree.path("cgroup")));
  PodCgroups pods{hierarchy};
};

const PodCgroup a{"A", "/kubepods/podA"};
const PodCgroup b{"B", "/kubepods/podB"};

}  // namespace

TEST_CASE("pods are measured by their uid") {
  Node node;
  node.pods.sync(std::array{a, b});
  CHECK(node.pods.size() == 2);
  CHECK(value_of(node.pods.usage("A")) == 100);
  CHECK(value_of(node.pods.working_set("A")) == 90);
  CHECK(value_of(node.pods.working_set("B")) == 200);
  CHECK(value_of(node.pods.path("A")) == "/kubepods/podA");
}

TEST_CASE("pods that are no longer listed are forgotten, the others are kept") {
  Node node;
  node.pods.sync(std::array{a, b});
  node.pods.sync(std::array{b});
  CHECK(node.pods.size() == 1);
  CHECK(value_of(node.pods.usage("B")) == 200);
  const auto forgotten = node.pods.usage("A");
  REQUIRE_FALSE(forgotten);
  CHECK(forgotten.error().is_gone());
  CHECK(forgotten.error().message == "no pod has the uid \"A\"");
}

TEST_CASE("a pod whose cgroup is made after it was listed is measured from then on") {
  Node node;
  node.pods.sync(std::array{PodCgroup{"C", "/kubepods/podC"}});
  CHECK(node.pods.usage("C").error().is_gone());
  node.tree.add("cgroup/memory/kubepods", pod("podC", {.usage = 7}));
  CHECK(value_of(node.pods.usage("C")) == 7);
}

TEST_CASE("a pod that is listed with another cgroup is measured there") {
  Node node;
  node.pods.sync(std::array{a});
  node.pods.sync(std::array{PodCgroup{"A", "/kubepods/podB"}});
  CHECK(value_of(node.pods.usage("A")) == 200);
}

TEST_CASE("a pod whose cgroup is no pod's says so and is never taken for the whole node") {
  Node node;
  node.pods.sync(std::array{PodCgroup{"X", "/"}});
  CHECK(error_of(node.pods.usage("X")) == "\"/\" is not the cgroup of a pod");
  CHECK(error_of(node.pods.processes("X")) == "\"/\" is not the cgroup of a pod");
  CHECK(error_of(node.pods.is_empty_or_gone("X")) == "\"/\" is not the cgroup of a pod");
}

TEST_CASE("a pod without a cgroup to itself has its containers' numbers together") {
  Node node;
  const PodCgroup shared{"S", "", {"/kubepods/podA", "/kubepods/podB", "/kubepods/gone"}};
  node.pods.sync(std::array{shared});
  CHECK(value_of(node.pods.usage("S")) == 300);
  CHECK(value_of(node.pods.working_set("S")) == 290);
  node.tree.write("cgroup/memory/kubepods/podA/cgroup.procs", "4\n5\n");
  CHECK(value_of(node.pods.process_count("S")) == 2);
  CHECK(error_of(node.pods.path("S")) == "\"\" is not the cgroup of a pod");

  node.pods.sync(std::array{PodCgroup{"S", "", {"/kubepods/podB"}}});
  CHECK(value_of(node.pods.usage("S")) == 200);
  node.pods.sync(std::array{PodCgroup{"S", "", {"/kubepods/gone"}}});
  CHECK(node.pods.usage("S").error().is_gone());
  node.pods.sync(std::array{PodCgroup{"S", ""}});
  CHECK(error_of(node.pods.usage("S")) == "\"\" is not the cgroup of a pod");
}

TEST_CASE("a pod's containers are measured one by one, from files that stay open where that is asked for") {
  Node node;
  node.tree.add("cgroup/memory/kubepods/podA", pod("c1", {.usage = 30, .inactive_file = 1}));
  node.tree.add("cgroup/memory/kubepods/podA", pod("c2", {.usage = 60}));
  const std::string c1 = "/kubepods/podA/c1";
  const std::string c2 = "/kubepods/podA/c2";
  node.pods.sync(std::array{PodCgroup{"A", "/kubepods/podA", {c1, c2, "/kubepods/podA/ended"}}});
  const auto memory = node.pods.memory("A");
  CHECK(value_of(memory->usage()) == 100);
  CHECK(value_of(memory->working_set_of(c1)) == 29);
  CHECK(memory->working_set_of("/kubepods/podA/ended").error().is_gone());
  CHECK(error_of(memory->working_set_of("/kubepods/podB")) == "\"/kubepods/podB\" is not the cgroup of a pod");
  CHECK(node.pods.largest_container("A") == c2);
  CHECK(node.pods.largest_container("B").empty());

  CHECK(memory->keep_containers_open(1) == 1);
  CHECK(memory->keep_containers_open(3) == 2);  // the third has ended
  std::filesystem::rename(node.tree.path("cgroup/memory/kubepods/podA/c1"), node.tree.path("elsewhere"));
  CHECK(value_of(memory->working_set_of(c1)) == 29);
  CHECK(memory->keep_containers_open(0) == 0);
  CHECK(memory->working_set_of(c1).error().is_gone());

  // Another list of the same pod: what is open of it stays so.
  node.pods.sync(std::array{PodCgroup{"A", "/kubepods/podA", {c2}}});
  CHECK(node.pods.memory("A") == memory);
  CHECK(node.pods.largest_container("A") == c2);
}

TEST_CASE("the processes of a pod, their number, and whether any is left") {
  Node node;
  node.pods.sync(std::array{a});
  CHECK(value_of(node.pods.is_empty_or_gone("A")));
  node.tree.write("cgroup/memory/kubepods/podA/cgroup.procs", "4\n5\n");
  CHECK(value_of(node.pods.processes("A")) == std::vector<pid_t>{4, 5});
  CHECK(value_of(node.pods.process_count("A")) == 2);
  CHECK_FALSE(value_of(node.pods.is_empty_or_gone("A")));
  CHECK(value_of(node.pods.is_empty_or_gone("unknown")));
}

TEST_CASE("cgroup v2: working sets come from memory.current and memory.stat") {
  const Tree tree{fixture::v2_node(
      {}, 0, {dir("kubepods", {dir("pod1", fixture::v2_memory({.usage = 50, .inactive_file = 20}))})})};
  const auto hierarchy = value_of(CgroupHierarchy::detect(tree.path("cgroup")));
  PodCgroups pods(hierarchy);
  pods.sync(std::array{PodCgroup{"1", "/kubepods/pod1"}});
  CHECK(value_of(pods.working_set("1")) == 30);
}

}  // namespace evictd::node::pod_cgroups_test
