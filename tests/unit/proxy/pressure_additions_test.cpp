#include "proxy/pressure_additions.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include <string>

namespace evictd::proxy::pressure_additions_test {
namespace {

namespace cri_v1 = ::runtime::v1;

constexpr auto socket = "/run/evictd/pressure/pressure.sock";

cri_v1::PodSandboxConfig asks(const std::string& answer) {
  cri_v1::PodSandboxConfig pod;
  (*pod.mutable_annotations())["evictd.io/memory-pressure"] = answer;
  return pod;
}

}  // namespace

TEST_CASE("a pod that asks for it gets the socket's directory to read, and is told where the socket is") {
  cri_v1::CreateContainerRequest request;
  REQUIRE(request.ParseFromString(pressure_additions(asks("true"), socket)));
  CHECK_FALSE(request.has_sandbox_config());
  REQUIRE(request.config().mounts_size() == 1);
  CHECK(request.config().mounts(0).host_path() == "/run/evictd/pressure");
  CHECK(request.config().mounts(0).container_path() == "/run/evictd-pressure");
  CHECK(request.config().mounts(0).readonly());
  REQUIRE(request.config().envs_size() == 1);
  CHECK(request.config().envs(0).key() == "MEMORY_PRESSURE_WATCH");
  CHECK(request.config().envs(0).value() == "/run/evictd-pressure/pressure.sock");
}

TEST_CASE("who does not ask gets nothing, nor does anybody where there is no socket") {
  CHECK(pressure_additions({}, socket).empty());
  CHECK(pressure_additions(asks("false"), socket).empty());
  CHECK(pressure_additions(asks("true"), "").empty());
}

}  // namespace evictd::proxy::pressure_additions_test
