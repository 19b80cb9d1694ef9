#include "agent/inferred_volumes.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"
#include "fixture/tree.hpp"

namespace evictd::agent {
namespace {

using fixture::dir;
using fixture::pod;
using fixture::Tree;

core::Pod inferred(const Tree& tree, const core::Pod& given) {
  const auto list = std::make_shared<const core::PodList>(fixture::pods({given}));
  return *with_inferred_volumes(list, {.logs = tree.path("logs"), .kubelet = tree.path("kubelet")})->front();
}

core::Pod with_uid(std::string uid) {
  auto result = pod("web");
  result.uid = std::move(uid);
  return result;
}

const auto volumes =
    dir("volumes", {dir("kubernetes.io~empty-dir", {dir("cache")}), dir("kubernetes.io~configmap", {dir("settings")}),
                    dir("kubernetes.io~nfs", {dir("share")})});

}  // namespace

TEST_CASE("local volumes are inferred from their directories, where the spec says none") {
  const Tree tree{dir("kubelet", {dir("pods", {dir("u1", {volumes})})})};
  const auto found = inferred(tree, with_uid("u1"));
  REQUIRE(found.volumes.size() == 2);
  CHECK(found.volumes[0] == fixture::volume("cache", core::Volume::Kind::EmptyDir));
  CHECK(found.volumes[1] == fixture::volume("settings", core::Volume::Kind::ConfigMap));
  auto known = with_uid("u1");
  known.volumes = {fixture::empty_dir("mine")};
  CHECK(inferred(tree, known) == known);
  CHECK(inferred(tree, with_uid("u2")) == with_uid("u2"));
}

TEST_CASE("no uid leads to the volumes of others, or to what only looks like some") {
  const Tree tree{std::vector{dir("kubelet", {dir("pods", {volumes, dir("u1", {volumes}), dir("linked")})}), volumes}};
  std::filesystem::create_directory_symlink("../u1/volumes", tree.path("kubelet/pods/linked/volumes"));
  using namespace std::string_literals;
  for (const auto& uid : {"../.."s, ".."s, "."s, ""s, "u1/../.."s, "/"s, "u1\0"s, "\0"s, "linked"s, "u1/"s,
                          std::string(5000, 'x'), tree.path().native()}) {
    CAPTURE(uid);
    CHECK(inferred(tree, with_uid(uid)).volumes.empty());
  }
}

}  // namespace evictd::agent
