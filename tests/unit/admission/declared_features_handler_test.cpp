#include "admission/declared_features_handler.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::admission::declared_features_handler_test {
namespace {

Verdict admit(bool host_network, bool host_users, const NodeSnapshot& node = {.node = core::Node{.name = "n1"}}) {
  auto pod = fixture::pod("a");
  pod.host_network = host_network;
  pod.host_users = host_users;
  return DeclaredFeaturesHandler{}.admit({.pod = pod, .other_pods = {}, .node = node});
}

const auto unsupported = Verdict::reject(
    "PodFeatureUnsupported", "Pod requires node features that are not available: UserNamespacesHostNetworkSupport");

}  // namespace

TEST_CASE("a user namespace of its own on the node's network needs a node that declares it") {
  CHECK(admit(true, false) == unsupported);
  CHECK(admit(true, false, {}) == unsupported);  // of the node nothing is known
  CHECK(admit(true, false, {.node = core::Node{.name = "n1", .declared_features = {"GuaranteedQoSPodCPUResize"}}}) ==
        unsupported);
  CHECK(admit(true, false,
              {.node = core::Node{.name = "n1", .declared_features = {"UserNamespacesHostNetworkSupport"}}}) ==
        Verdict::admit());
}

TEST_CASE("other pods need no feature") {
  CHECK(admit(true, true) == Verdict::admit());
  CHECK(admit(false, false) == Verdict::admit());
  CHECK(admit(false, true, {}) == Verdict::admit());
}

}  // namespace evictd::admission::declared_features_handler_test
