#include "node/layer_mounts.hpp"

#include <doctest/doctest.h>

#include "fixture/tree.hpp"

namespace evictd::node::layer_mounts_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Tree;

std::string upper_of(std::string_view line) {
  const auto found = parse_layer_mount(line);
  return found ? found->container + " " + found->upper.native() : "none";
}

}  // namespace

TEST_CASE("of a container's root the mount table tells the writable layer, and of nothing else") {
  CHECK(upper_of("684 25 0:62 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/c0ffee/rootfs rw,relatime "
                 "shared:290 - overlay overlay rw,lowerdir=/s/1/fs:/s/2/fs,upperdir=/s/3/fs,workdir=/s/3/work") ==
        "c0ffee /s/3/fs");
  // Several propagation fields, blanks in paths, and a layer that is the last option.
  CHECK(upper_of("684 25 0:62 / /a\\040b/c0ffee/rootfs rw shared:1 master:2 - overlay o rw,upperdir=/x\\040y/fs") ==
        "c0ffee /x y/fs");
  CHECK(upper_of("1 2 0:3 / /c0ffee/rootfs rw - overlay overlay ro,lowerdir=/s/1/fs") == "none");
  CHECK(upper_of("1 2 0:3 / /c0ffee/rootfs rw - overlay overlay rw,upperdir=relative/fs") == "none");
  CHECK(upper_of("1 2 0:3 / /c0ffee/merged rw - overlay overlay rw,upperdir=/s/3/fs") == "none");
  CHECK(upper_of("1 2 0:3 / /c0ffee/rootfs rw - ext4 /dev/sda rw,upperdir=/s/3/fs") == "none");
  CHECK(upper_of("1 2 0:3 / /rootfs rw - overlay overlay rw,upperdir=/s/3/fs") == "none");
  CHECK(upper_of("") == "none");
  CHECK(upper_of(" - overlay ") == "none");
}

TEST_CASE("what only the host's table names is reached through the host's first process") {
  const Tree tree{dir("proc", {dir("1", {file("mountinfo",
                                              "1 2 0:3 / /run/c0ffee/rootfs rw - overlay overlay rw,upperdir=/s/3/fs\n"
                                              "nonsense\n")})})};
  LayerMounts layers{tree.path("proc")};
  CHECK(layers.find("c0ffee") == tree.path("proc/1/root/s/3/fs"));
  CHECK_FALSE(layers.find("other"));
  CHECK(layers.find("c0ffee"));
}

}  // namespace evictd::node::layer_mounts_test
