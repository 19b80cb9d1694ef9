#include <doctest/doctest.h>

#include <filesystem>

#include "cri/image_filesystem.hpp"
#include "pods/layer_usage.hpp"
#include "reactor.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace integration::runtime_disk_test {

using namespace std::chrono_literals;
using testbed::Testbed;

TEST_CASE("the runtime tells where it keeps images and writable layers") {
  Testbed bed;
  Reactor reactor{bed};
  const auto found = reactor.run(evictd::cri::image_filesystem(reactor.runtime));
  REQUIRE(found);
  CHECK(testbed::is_below(found->images, bed.containerd().root()));
  CHECK(std::filesystem::is_directory(found->images));
  CHECK(found->writable_layers == found->images);
}

TEST_CASE("what a container writes outside its volumes is found in its writable layer, and in no other") {
  constexpr std::int64_t MiB = 1 << 20;
  Testbed bed;
  Reactor reactor{bed};
  const auto pod = bed.cri().run_pod(
      {.name = "writes",
       .containers = {{.name = "bytes", .command = {"sh", "-c", "mkdir /data; exec load write /data 8Mi 64Mi/s"}},
                      {.name = "inodes", .command = {"sh", "-c", "mkdir /data; exec load inodes /data 300"}},
                      {.name = "nothing", .args = {"hold", "1Mi"}}}});

  evictd::pods::LayerUsage layers;
  const auto bytes = [&](const char* name) { return layers[pod.container(name)].bytes.value_or(-1); };
  const auto inodes = [&](const char* name) { return layers[pod.container(name)].inodes.value_or(-1); };
  // containerd measures every 10 s.
  testbed::wait_until("the layers hold what was written", 120s, [&] {
    auto measured = reactor.run(evictd::pods::layer_usage(reactor.runtime));
    REQUIRE(measured);
    layers = std::move(*measured);
    return bytes("bytes") >= 8 * MiB && inodes("inodes") >= 300 && bytes("nothing") >= 0;
  });
  CHECK(bytes("bytes") < 9 * MiB);
  CHECK(inodes("bytes") < 20);
  CHECK(inodes("inodes") < 320);
  CHECK(bytes("nothing") < 1 * MiB);
  CHECK(inodes("nothing") < 20);
}

}  // namespace integration::runtime_disk_test
