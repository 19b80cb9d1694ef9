#include "pods/layer_usage.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include <limits>
#include <optional>

#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "fixture/result.hpp"

namespace evictd::pods::layer_usage_test {

using namespace evictd;
using core::DiskUsage;
namespace asio = boost::asio;
namespace v1 = ::runtime::v1;

namespace {

struct Fixture {
  test::FakeRuntime runtime;
  asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), runtime.endpoint(), test::patience};

  Result<pods::LayerUsage> measure() { return test::run(reactor, pods::layer_usage(client)); }
};

v1::ContainerStats stats(const std::string& id, std::optional<std::uint64_t> bytes,
                         std::optional<std::uint64_t> inodes) {
  v1::ContainerStats stats;
  stats.mutable_attributes()->set_id(id);
  auto& layer = *stats.mutable_writable_layer();
  if (bytes) layer.mutable_used_bytes()->set_value(*bytes);
  if (inodes) layer.mutable_inodes_used()->set_value(*inodes);
  return stats;
}

}  // namespace

TEST_CASE("each container's writable layer has its bytes and inodes, and zero is a number") {
  Fixture f;
  f.runtime.start();
  f.runtime.put(stats("web", 40'960, 12));
  f.runtime.put(stats("idle", 0, 0));
  CHECK(f.measure() == pods::LayerUsage{{"idle", DiskUsage{0, 0}}, {"web", DiskUsage{40'960, 12}}});
}

TEST_CASE("what the runtime has not measured is unknown, not zero") {
  Fixture f;
  f.runtime.start();
  f.runtime.put(stats("half", 4096, {}));
  v1::ContainerStats unmeasured;
  unmeasured.mutable_attributes()->set_id("young");
  f.runtime.put(unmeasured);
  CHECK(f.measure() == pods::LayerUsage{{"half", DiskUsage{.bytes = 4096}}});
}

TEST_CASE("a number beyond 63 bits counts as the largest there is") {
  Fixture f;
  f.runtime.start();
  f.runtime.put(stats("odd", std::numeric_limits<std::uint64_t>::max(), 1));
  CHECK(f.measure() == pods::LayerUsage{{"odd", DiskUsage{std::numeric_limits<std::int64_t>::max(), 1}}});
}

TEST_CASE("without a runtime the layers cannot be measured") {
  Fixture f;
  CHECK(fixture::error_of(f.measure()).starts_with("cannot measure the writable layers: " + f.runtime.endpoint()));
}

}  // namespace evictd::pods::layer_usage_test
