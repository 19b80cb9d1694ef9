#include "node/cgroup_path.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"

namespace evictd::node {

using fixture::error_of;
using fixture::value_of;

TEST_CASE("the cgroupfs driver names the path itself") {
  CHECK(value_of(cgroup_path("/lab/kubepods/burstable/pod12-34")) == "/lab/kubepods/burstable/pod12-34");
  CHECK(value_of(cgroup_path("kubepods/pod1/")) == "/kubepods/pod1");
}

TEST_CASE("the systemd driver names a slice, whose dashes are levels") {
  CHECK(value_of(cgroup_path("kubepods-burstable-pod12_34.slice")) ==
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice");
  CHECK(value_of(cgroup_path("/kubepods-pod1.slice")) == "/kubepods.slice/kubepods-pod1.slice");
  CHECK(value_of(cgroup_path("kubepods.slice")) == "/kubepods.slice");
  CHECK(value_of(cgroup_path("/kubepods.slice/kubepods-pod1.slice")) == "/kubepods.slice/kubepods-pod1.slice");
}

TEST_CASE("a slice with an empty level is none") {
  for (const auto* name : {"a--b.slice", "-a.slice", "a-.slice", ".slice", "-.slice"})
    CHECK(error_of(cgroup_path(name)) == "\"" + std::string(name) + "\" is not the name of a slice");
}

TEST_CASE("neither the root nor a way out of the hierarchy is a pod's cgroup") {
  for (const auto* name : {"", "/", "//", "..", "/a/../..", "../a", "/a/.."})
    CHECK(error_of(cgroup_path(name)) == "\"" + std::string(name) + "\" is not the cgroup of a pod");
  CHECK(value_of(cgroup_path("/a..b/c")) == "/a..b/c");
}

}  // namespace evictd::node
