#include "evict/image_volumes.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include "pods/pod_builder.hpp"

namespace evictd::evict::image_volumes_test {

namespace v1 = ::runtime::v1;

namespace {

using Ids = std::vector<std::string>;
using Images = std::set<std::string>;

v1::ListContainersResponse list(const Ids& ids) {
  v1::ListContainersResponse containers;
  for (const auto& id : ids) *containers.add_containers() = test::container(id, "s", "app");
  return containers;
}

v1::ContainerStatus mounting(const Ids& images) {
  v1::ContainerStatus status;
  auto& directory = *status.add_mounts();
  directory.set_host_path("/srv");
  directory.set_container_path("/data");
  for (const auto& image : images) {
    auto& mount = *status.add_mounts();
    mount.set_container_path("/volume");
    mount.mutable_image()->set_image(image);
  }
  return status;
}

}  // namespace

TEST_CASE("each container is asked about until its status is known, and again when it had gone") {
  ImageVolumes volumes;
  CHECK(volumes.to_ask(list({"a", "b"})) == Ids{"a", "b"});
  volumes.learn("a", mounting({}));
  CHECK(volumes.to_ask(list({"a", "b"})) == Ids{"b"});
  volumes.learn("b", mounting({"i-1"}));
  CHECK(volumes.to_ask(list({"a", "b"})).empty());
  CHECK(volumes.to_ask(list({"a", "c"})) == Ids{"c"});
  CHECK(volumes.to_ask(list({"a", "b"})) == Ids{"b"});
}

TEST_CASE("what containers have mounted are the images of all those that are there, and no directories") {
  ImageVolumes volumes;
  volumes.learn("a", mounting({}));
  volumes.learn("b", mounting({"i-1", "i-2"}));
  volumes.learn("c", mounting({"i-2", "shop/web:1"}));
  CHECK(volumes.mounted_by(list({})).empty());
  CHECK(volumes.mounted_by(list({"a"})).empty());
  CHECK(volumes.mounted_by(list({"a", "b"})) == Images{"i-1", "i-2"});
  CHECK(volumes.mounted_by(list({"b", "c", "unknown"})) == Images{"i-1", "i-2", "shop/web:1"});
  // Another list is no reason to forget: only who asks afterwards may.
  CHECK(volumes.to_ask(list({"a", "b", "c"})).empty());
}

}  // namespace evictd::evict::image_volumes_test
