#include "evict/pod_cgroup_removal.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "fixture/tree.hpp"

namespace evictd::evict::pod_cgroup_removal_test {

using fixture::dir;
using fixture::file;
using fixture::Tree;
using node::CgroupVersion;

namespace {

os::FileResult<bool> remove(const Tree& tree, std::string_view root, CgroupVersion version, const std::string& cgroup) {
  return remove_pod_cgroup(tree.path(root).native(), version, cgroup);
}

bool has(const Tree& tree, std::string_view name) { return std::filesystem::exists(tree.path(name)); }

}  // namespace

TEST_CASE("only a pod's own cgroup may be removed, by its name and below the pods'") {
  CHECK(is_removable("/kubepods/poda", "a", "/kubepods"));
  CHECK(is_removable("/lab/kubepods/burstable/poda", "a", "/lab/kubepods"));
  CHECK_FALSE(is_removable("/kubepods/podb", "a", "/kubepods"));
  CHECK_FALSE(is_removable("/kubepods/burstable", "a", "/kubepods"));
  CHECK_FALSE(is_removable("/system/poda", "a", "/kubepods"));
  CHECK_FALSE(is_removable("/poda", "a", "/poda"));
  CHECK_FALSE(is_removable("/kubepods/../system/poda", "a", "/kubepods"));
  CHECK_FALSE(is_removable("/kubepods/pod", "", "/kubepods"));
  CHECK_FALSE(is_removable("", "a", "/kubepods"));
  // systemd's
  CHECK_FALSE(is_removable("/kubepods.slice/kubepods-poda.slice", "a", "/kubepods.slice"));
  CHECK_FALSE(is_removable("/kubepods/poda.slice", "a.slice", "/kubepods"));
}

TEST_CASE("a cgroup goes with those below it, and what lies beside and above it stays") {
  const Tree tree{dir("kubepods", {dir("poda", {dir("c1"), dir("c2", {dir("own", {dir("deeper")})})}), dir("podb")})};
  CHECK(remove(tree, "", CgroupVersion::v2, "/kubepods/poda").value_or(false));
  CHECK_FALSE(has(tree, "kubepods/poda"));
  CHECK(has(tree, "kubepods/podb"));
  CHECK(remove(tree, "", CgroupVersion::v2, "/kubepods/poda").value_or(false));  // it is gone already
  CHECK(remove(tree, "", CgroupVersion::v2, "/elsewhere/poda").value_or(false));
  CHECK(remove(tree, "", CgroupVersion::v2, "/kubepods/podb").value_or(false));
  CHECK(has(tree, "kubepods"));
}

TEST_CASE("v1: it goes from every hierarchy that is mounted") {
  const auto procs = file("cgroup.procs", "");
  const Tree tree{{dir("memory", {procs, dir("kubepods", {dir("poda")})}),
                   dir("pids", {procs, dir("kubepods", {dir("poda", {dir("c1")}), dir("podb")})}),
                   dir("systemd", {procs, dir("kubepods", {dir("poda")})}),
                   dir("unified", {dir("kubepods", {dir("poda", {procs})})})}};  // not mounted
  CHECK(remove(tree, "memory", CgroupVersion::v1, "/kubepods/poda").value_or(false));
  for (const auto* name : {"memory/kubepods/poda", "pids/kubepods/poda", "systemd/kubepods/poda"})
    CHECK_MESSAGE(!has(tree, name), name);
  CHECK(has(tree, "pids/kubepods/podb"));
  CHECK(has(tree, "unified/kubepods/poda"));
}

TEST_CASE("a cgroup in which something is stays, and that is no error") {
  // Of another file system the kernel keeps a directory that has files, as it keeps a cgroup that has processes.
  const Tree tree{dir("kubepods", {dir("poda", {dir("c1", {file("busy", "")}), dir("c2")})})};
  const auto removed = remove(tree, "", CgroupVersion::v2, "/kubepods/poda");
  REQUIRE(removed.has_value());
  CHECK_FALSE(*removed);
  CHECK(has(tree, "kubepods/poda/c1/busy"));
}

TEST_CASE("no link is followed, on the way or below") {
  const Tree tree{{dir("kubepods", {dir("poda")}), dir("victim", {dir("poda"), dir("empty")})}};
  std::filesystem::create_directory_symlink(tree.path("victim"), tree.path("kubepods/link"));
  std::filesystem::create_directory_symlink(tree.path("victim"), tree.path("kubepods/poda/link"));
  CHECK_FALSE(remove(tree, "", CgroupVersion::v2, "/kubepods/link/poda").has_value());
  CHECK_FALSE(remove(tree, "", CgroupVersion::v2, "/kubepods/poda").value_or(true));
  CHECK(has(tree, "victim/poda"));
  CHECK(has(tree, "victim/empty"));
}

TEST_CASE("a pod that made them too deep keeps its cgroup") {
  std::string path = "kubepods/poda";
  const Tree tree{dir("kubepods", {dir("poda")})};
  for (int i = 0; i < 40; ++i) path += "/d";
  std::filesystem::create_directories(tree.path(path));
  CHECK_FALSE(remove(tree, "", CgroupVersion::v2, "/kubepods/poda").value_or(true));
  CHECK(has(tree, "kubepods/poda"));
}

}  // namespace evictd::evict::pod_cgroup_removal_test
