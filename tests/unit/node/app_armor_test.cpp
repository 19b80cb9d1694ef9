#include "node/app_armor.hpp"

#include <doctest/doctest.h>

#include "fixture/tree.hpp"

namespace evictd::node::app_armor_test {
namespace {

using fixture::dir;
using fixture::Entry;
using fixture::file;

Entry sys(const char* enabled, std::vector<Entry> security = {}) {
  return dir("sys", {dir("module", {dir("apparmor", {dir("parameters", {file("enabled", enabled)})})}),
                     dir("kernel", {dir("security", std::move(security))})});
}

Entry proc(const char* mounts) { return dir("proc", {file("mounts", mounts)}); }

constexpr auto* with_securityfs = "proc /proc proc rw 0 0\nsecurityfs /sys/kernel/security securityfs rw 0 0\n";

admission::AppArmorSupport read(const std::vector<Entry>& entries) {
  const fixture::Tree tree{entries};
  return read_app_armor(tree.path());
}

}  // namespace

TEST_CASE("AppArmor is there when the kernel says so and its file system is mounted") {
  CHECK(read({sys("Y\n", {dir("apparmor")}), proc(with_securityfs)}) == admission::AppArmorSupport{.enabled = true});
}

TEST_CASE("AppArmor that is off, or no part of the kernel, is not there") {
  CHECK_FALSE(read({sys("N\n", {dir("apparmor")}), proc(with_securityfs)}).enabled);
  CHECK_FALSE(read({sys("", {dir("apparmor")}), proc(with_securityfs)}).enabled);
  CHECK_FALSE(read({}).enabled);
}

TEST_CASE("AppArmor that cannot be reached is an error in the kubelet's words") {
  const auto error = [](const char* mounts) { return read({sys("Y\n"), proc(mounts)}).error; };
  CHECK(error("proc /proc proc rw 0 0\n") == "error finding AppArmor FS: securityfs not found");
  CHECK(error("short\n\n") == "error finding AppArmor FS: securityfs not found");
  CHECK(error(with_securityfs) == "error finding AppArmor FS: path /sys/kernel/security/apparmor does not exist");
  CHECK(read({sys("Y\n")}).error == "error finding AppArmor FS: securityfs not found");
}

}  // namespace evictd::node::app_armor_test
