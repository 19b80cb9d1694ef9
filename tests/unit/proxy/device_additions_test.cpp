#include "proxy/device_additions.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>
#include <evictd.pb.h>
#include <grpcpp/support/slice.h>

#include <vector>

namespace evictd::proxy::device_additions_test {
namespace {

namespace cri_v1 = ::runtime::v1;

v1::AdmitResponse answer() {
  v1::AdmitResponse response;
  response.set_admitted(true);
  response.add_allocations()->set_container("without");
  auto& given = *response.add_allocations();
  given.set_container("main");
  auto& edits = *given.mutable_edits();
  (*edits.mutable_environment())["GPU"] = "0";
  auto& mount = *edits.add_mounts();
  mount.set_container_path("/lib");
  mount.set_host_path("/host/lib");
  mount.set_read_only(true);
  auto& device = *edits.add_devices();
  device.set_container_path("/dev/gpu");
  device.set_host_path("/dev/gpu0");
  device.set_permissions("rw");
  (*edits.mutable_annotations())["a"] = "the plugin's";
  edits.add_cdi_devices("v/c=0");
  return response;
}

std::string bytes_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  REQUIRE(buffer.Dump(&slices).ok());
  std::string result;
  for (const auto& slice : slices) result.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return result;
}

std::string with(const std::string& additions, const std::string& request) {
  const grpc::Slice slice{request};
  return bytes_of(with_additions(additions, grpc::ByteBuffer{&slice, 1}).value());
}

}  // namespace

TEST_CASE("all that plugins say of the container is added, and nothing of others") {
  cri_v1::CreateContainerRequest request;
  REQUIRE(request.ParseFromString(device_additions(answer(), "main")));
  CHECK_FALSE(request.has_sandbox_config());
  const auto& config = request.config();
  REQUIRE(config.envs_size() == 1);
  CHECK(config.envs(0).key() + "=" + config.envs(0).value() == "GPU=0");
  REQUIRE(config.mounts_size() == 1);
  CHECK(config.mounts(0).container_path() == "/lib");
  CHECK(config.mounts(0).host_path() == "/host/lib");
  CHECK(config.mounts(0).readonly());
  REQUIRE(config.devices_size() == 1);
  CHECK(config.devices(0).container_path() == "/dev/gpu");
  CHECK(config.devices(0).host_path() == "/dev/gpu0");
  CHECK(config.devices(0).permissions() == "rw");
  CHECK(config.annotations().at("a") == "the plugin's");
  REQUIRE(config.cdi_devices_size() == 1);
  CHECK(config.cdi_devices(0).name() == "v/c=0");

  CHECK(device_additions(answer(), "without").empty());
  CHECK(device_additions(answer(), "unheard of").empty());
  CHECK(device_additions({}, "").empty());
}

TEST_CASE("plugins that want nothing add nothing") {
  v1::AdmitResponse response;
  auto& given = *response.add_allocations();
  given.set_container("main");
  given.mutable_edits();
  CHECK(device_additions(response, "main").empty());
}

TEST_CASE("what the client sent stays to the byte, and overrides what plugins say") {
  cri_v1::CreateContainerRequest own;
  own.set_pod_sandbox_id("s1");
  auto& config = *own.mutable_config();
  config.mutable_metadata()->set_name("main");
  config.add_envs()->set_key("OWN");
  (*config.mutable_annotations())["a"] = "the pod's";
  (*config.mutable_annotations())["b"] = "c";
  const std::string unknown{"\xc2\xb2\x04\x03new", 7};
  const auto sent = own.SerializeAsString() + unknown;

  const auto passed = with(device_additions(answer(), "main"), sent);
  CHECK(passed.ends_with(sent));
  cri_v1::CreateContainerRequest merged;
  REQUIRE(merged.ParseFromString(passed));
  CHECK(merged.pod_sandbox_id() == "s1");
  CHECK(merged.config().metadata().name() == "main");
  REQUIRE(merged.config().envs_size() == 2);
  CHECK(merged.config().envs(0).key() == "GPU");
  CHECK(merged.config().envs(1).key() == "OWN");
  CHECK(merged.config().annotations().at("a") == "the pod's");
  CHECK(merged.config().annotations().at("b") == "c");
  CHECK(merged.config().devices_size() == 1);
}

}  // namespace evictd::proxy::device_additions_test
