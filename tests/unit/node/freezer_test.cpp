#include "node/freezer.hpp"

#include <doctest/doctest.h>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"

namespace evictd::node::freezer_test {
namespace {

using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::value_of;

struct Scene {
  explicit Scene(const std::vector<fixture::Entry>& entries) : tree{entries} {}

  [[nodiscard]] CgroupHierarchy hierarchy() const { return value_of(CgroupHierarchy::detect(tree.path("cgroup"))); }

  fixture::Tree tree;
  HoldNotes notes{tree.path("run/held")};
};

std::string state(const CgroupHierarchy& hierarchy, const std::string& name) {
  return value_of(read_held_file(value_of(hold_directory(hierarchy, HoldTree::freezer, "/kubepods/poda")), name));
}

}  // namespace

TEST_CASE("v2: cgroup.freeze of the pod's cgroup, until it is let go") {
  const Scene scene{fixture::v2_node(
      {}, 0,
      {dir("kubepods",
           {dir("poda", {file("cgroup.freeze", "0\n"), file("cgroup.events", "populated 1\nfrozen 1\n")})})})};
  const auto hierarchy = scene.hierarchy();
  CHECK(freeze(hierarchy, scene.notes, "a", "/kubepods/poda").has_value());
  CHECK(state(hierarchy, "cgroup.freeze") == "1");
  CHECK(lift_all_holds(hierarchy, scene.notes) == 1);
  CHECK(state(hierarchy, "cgroup.freeze") == "0");
}

TEST_CASE("v1: freezer.state in a hierarchy of its own, until it is let go, also while it is still being frozen") {
  const Scene scene{fixture::v1_node({}, {}, {dir("kubepods", {dir("poda")})})};
  scene.tree.add("cgroup", dir("freezer", {dir("kubepods", {dir("poda", {file("freezer.state", "THAWED\n")})})}));
  const auto hierarchy = scene.hierarchy();
  CHECK(freeze(hierarchy, scene.notes, "a", "/kubepods/poda").has_value());
  CHECK(state(hierarchy, "freezer.state") == "FROZEN");
  scene.tree.write("cgroup/freezer/kubepods/poda/freezer.state", "FREEZING\n");
  CHECK(lift_all_holds(hierarchy, scene.notes) == 1);
  CHECK(state(hierarchy, "freezer.state") == "THAWED");
}

TEST_CASE("a pod that someone else has frozen stays so, and one that cannot be frozen is an error") {
  const Scene scene{fixture::v2_node({}, 0, {dir("kubepods", {dir("poda", {file("cgroup.freeze", "1\n")})})})};
  const auto hierarchy = scene.hierarchy();
  CHECK(error_of(freeze(hierarchy, scene.notes, "a", "/kubepods/poda")).ends_with("someone else has frozen it"));
  CHECK(state(hierarchy, "cgroup.freeze") == "1");
  CHECK_FALSE(freeze(hierarchy, scene.notes, "b", "/kubepods/podb").has_value());
  CHECK(scene.notes.uids().empty());
}

}  // namespace evictd::node::freezer_test
