#include "devices/registration.hpp"

#include <deviceplugin.pb.h>
#include <doctest/doctest.h>

#include "fixture/result.hpp"

namespace evictd::devices::registration_test {
namespace {

::v1beta1::RegisterRequest request(std::string resource, std::string endpoint, std::string version = "v1beta1") {
  ::v1beta1::RegisterRequest result;
  result.set_version(std::move(version));
  result.set_resource_name(std::move(resource));
  result.set_endpoint(std::move(endpoint));
  return result;
}

std::string error(const ::v1beta1::RegisterRequest& request) { return fixture::error_of(read_registration(request)); }

}  // namespace

TEST_CASE("a plugin of v1beta1 registers an extended resource by the name of its socket") {
  CHECK(fixture::value_of(read_registration(request("example.com/gpu", "gpu.sock"))) ==
        Registration{.resource = "example.com/gpu", .endpoint = "gpu.sock"});
}

TEST_CASE("another version is refused in the kubelet's words") {
  CHECK(error(request("example.com/gpu", "gpu.sock", "v1alpha1")) ==
        "requested API version \"v1alpha1\" is not supported by kubelet. Supported version is [\"v1beta1\"]");
  CHECK(error(request("example.com/gpu", "gpu.sock", "\x1b[2J")).find('\x1b') == std::string::npos);
}

TEST_CASE("what is no extended resource is refused") {
  CHECK(is_resource_of_plugins("example.com/gpu"));
  CHECK(is_resource_of_plugins("a/B_c.D-9"));
  CHECK(is_resource_of_plugins("x.y/" + std::string(63, 'n')));
  for (const std::string& name :
       {std::string(), std::string("cpu"), std::string("kubernetes.io/gpu"), std::string("a.kubernetes.io/gpu"),
        std::string("requests.example.com/gpu"), std::string("example.com/"), std::string("/gpu"),
        std::string("example.com/gpu/0"), std::string("Example.com/gpu"), std::string("example..com/gpu"),
        std::string("-example.com/gpu"), std::string("example.com/-gpu"), std::string("example.com/gpu\n"),
        std::string("example.com/gp u"), "x.y/" + std::string(64, 'n'), std::string(245, 'd') + "/n"})
    CHECK_FALSE(is_resource_of_plugins(name));
  CHECK(error(request("cpu", "gpu.sock")) == "the ResourceName \"cpu\" is invalid");
}

TEST_CASE("an endpoint is the name of a socket in the directory, and not of evictd's own") {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../gpu.sock"), std::string("/run/gpu.sock"),
        std::string("a/gpu.sock"), std::string("gpu\0.sock", 9), std::string(256, 'a'), std::string("kubelet.sock")})
    CHECK(error(request("example.com/gpu", name)).starts_with("the endpoint \""));
}

}  // namespace evictd::devices::registration_test
