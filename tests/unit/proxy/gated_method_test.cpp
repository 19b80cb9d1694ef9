#include "proxy/gated_method.hpp"

#include <doctest/doctest.h>

namespace evictd::proxy::gated_method_test {
namespace {

TEST_CASE(
    "the calls that start a pod or a container, or have it grow, are gated, in both versions of CRI and however the "
    "path is written") {
  CHECK(gated_method("/runtime.v1.RuntimeService/RunPodSandbox") == GatedMethod::RunPodSandbox);
  CHECK(gated_method("/runtime.v1.RuntimeService/CreateContainer") == GatedMethod::CreateContainer);
  CHECK(gated_method("/runtime.v1alpha2.RuntimeService/RunPodSandbox") == GatedMethod::RunPodSandbox);
  CHECK(gated_method("/runtime.v1alpha2.RuntimeService/CreateContainer") == GatedMethod::CreateContainer);
  CHECK(gated_method("/runtime.v1.RuntimeService/UpdateContainerResources") == GatedMethod::UpdateContainerResources);
  CHECK(gated_method("runtime.v1.RuntimeService/RunPodSandbox") == GatedMethod::RunPodSandbox);
}

TEST_CASE("no other call is") {
  for (const auto* path : {"", "/", "//", "RunPodSandbox", "/RunPodSandbox", "/runtime.v1.RuntimeService/",
                           "/runtime.v1.RuntimeService/StartContainer", "/runtime.v1.RuntimeService/RunPodSandboxes",
                           "/runtime.v1.ImageService/RunPodSandbox", "/runtime.v2.RuntimeService/RunPodSandbox",
                           "/a/runtime.v1.RuntimeService/RunPodSandbox", "//runtime.v1.RuntimeService/RunPodSandbox"})
    CHECK_FALSE(gated_method(path).has_value());
}

}  // namespace
}  // namespace evictd::proxy::gated_method_test
