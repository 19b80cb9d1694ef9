#include "node/hold_notes.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "fixture/captured_log.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"

namespace evictd::node::hold_notes_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::value_of;

/// A pod's cgroup, v2, and the notes beside the tree.
struct Scene {
  [[nodiscard]] std::uint64_t inode() const { return value_of(hierarchy.memory("/kubepods/poda")).inode(); }
  [[nodiscard]] HoldNote note() const {
    return {
        .uid = "a",
        .cgroup = "/kubepods/poda",
        .values = {{.inode = inode(), .file = "memory.high", .before = "max", .now = "4096"},
                   {.tree = HoldTree::freezer, .inode = inode(), .file = "cgroup.freeze", .before = "0", .now = "1"}}};
  }
  void write(const std::string& name, const std::string& text) const {
    tree.write("cgroup/kubepods/poda/" + name, text + "\n");
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return value_of(read_held_file(value_of(hierarchy.memory("/kubepods/poda")), name));
  }
  [[nodiscard]] bool has_directory() const { return std::filesystem::exists(tree.path("run/held")); }

  fixture::Tree tree{fixture::v2_node(
      {}, 0, {dir("kubepods", {dir("poda", {file("memory.high", "4096\n"), file("cgroup.freeze", "1\n")})})})};
  CgroupHierarchy hierarchy = value_of(CgroupHierarchy::detect(tree.path("cgroup")));
  HoldNotes notes{tree.path("run/held")};
};

}  // namespace

TEST_CASE("a note comes back as it was written, and what is no note is none") {
  const Scene scene;
  CHECK(HoldNote::parse("a", scene.note().text()) == scene.note());
  for (const auto* text : {"", "kubepods\n", "/a\nmemory 1 memory.high max\n", "/a\nmemory 1 memory.high max 1 2\n",
                           "/a\ndisk 1 memory.high max 1\n", "/a\nmemory x memory.high max 1\n",
                           "/a\nmemory 1 cgroup.procs 0 1\n", "/a\nmemory 1 ../memory.high max 1\n"}) {
    CAPTURE(text);
    CHECK_FALSE(HoldNote::parse("a", text).has_value());
  }
}

TEST_CASE("the notes' directory is there as long as there is a note, and a uid leads nowhere else") {
  const Scene scene;
  CHECK(scene.notes.uids().empty());
  CHECK(scene.notes.write(scene.note()).has_value());
  CHECK(scene.notes.uids() == std::vector<std::string>{"a"});
  CHECK(value_of(scene.notes.read("a")) == scene.note());
  CHECK_FALSE(value_of(scene.notes.read("b")).has_value());
  for (const auto* uid : {"", ".", "..", "../a", "a/b", "a.new"}) {
    CAPTURE(uid);
    auto note = scene.note();
    note.uid = uid;
    CHECK_FALSE(scene.notes.write(note).has_value());
  }
  scene.notes.remove("a");
  scene.notes.remove("a");
  CHECK_FALSE(scene.has_directory());
}

TEST_CASE("lifting puts back what stood there before, once") {
  const Scene scene;
  REQUIRE(scene.notes.write(scene.note()).has_value());
  CHECK(lift_all_holds(scene.hierarchy, scene.notes) == 1);
  CHECK(scene.read("memory.high") == "max");
  CHECK(scene.read("cgroup.freeze") == "0");
  CHECK_FALSE(scene.has_directory());
  CHECK(lift_all_holds(scene.hierarchy, scene.notes) == 0);
}

TEST_CASE("a value that is not evictd's any more stays") {
  const Scene scene;
  const fixture::CapturedLog log;
  REQUIRE(scene.notes.write(scene.note()).has_value());
  scene.write("memory.high", "8192");
  CHECK(lift_hold(scene.hierarchy, scene.notes, "a").has_value());
  CHECK(scene.read("memory.high") == "8192");
  CHECK(scene.read("cgroup.freeze") == "0");
  CHECK_FALSE(scene.has_directory());
}

TEST_CASE("a cgroup that was made anew under the same name was never touched, and one that is gone has nothing") {
  const Scene scene;
  auto note = scene.note();
  for (auto& value : note.values) ++value.inode;
  REQUIRE(scene.notes.write(note).has_value());
  CHECK(lift_hold(scene.hierarchy, scene.notes, "a").has_value());
  CHECK(scene.read("memory.high") == "4096");

  REQUIRE(scene.notes.write(scene.note()).has_value());
  scene.tree.remove("cgroup/kubepods/poda");
  CHECK(lift_hold(scene.hierarchy, scene.notes, "a").has_value());
  CHECK_FALSE(scene.has_directory());
}

TEST_CASE("what cannot be put back keeps its note, and the rest is put back all the same") {
  const Scene scene;
  const fixture::CapturedLog log;
  REQUIRE(scene.notes.write(scene.note()).has_value());
  scene.tree.remove("cgroup/kubepods/poda/cgroup.freeze");
  scene.tree.add("cgroup/kubepods/poda", dir("cgroup.freeze"));
  CHECK_FALSE(lift_hold(scene.hierarchy, scene.notes, "a").has_value());
  CHECK(scene.read("memory.high") == "max");
  CHECK(scene.notes.uids() == std::vector<std::string>{"a"});
}

TEST_CASE("a note that cannot be read for the moment stays, and what it tells of is put back later") {
  const Scene scene;
  std::filesystem::create_directories(scene.tree.path("run/held/a"));
  CHECK_FALSE(lift_hold(scene.hierarchy, scene.notes, "a").has_value());
  CHECK(scene.notes.uids() == std::vector<std::string>{"a"});
  scene.notes.remove("a");
  REQUIRE(scene.notes.write(scene.note()).has_value());
  CHECK(lift_hold(scene.hierarchy, scene.notes, "a").has_value());
  CHECK(scene.notes.uids().empty());
}

TEST_CASE("a note that was being written when evictd was killed goes with the next start") {
  const Scene scene;
  scene.tree.add("", dir("run", {dir("held", {file("a.new", "/kubepods/po")})}));
  CHECK(lift_all_holds(scene.hierarchy, scene.notes) == 0);
  CHECK_FALSE(scene.has_directory());
}

}  // namespace evictd::node::hold_notes_test
