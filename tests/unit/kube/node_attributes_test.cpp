#include "kube/node_attributes.hpp"

#include <doctest/doctest.h>

namespace evictd::kube::node_attributes_test {

TEST_CASE("of a node's object labels, taints and what is allocatable are read") {
  const auto node = parse_node_attributes(R"({
    "metadata": {"name": "worker-1", "labels": {"zone": "a", "kubernetes.io/os": "linux"}},
    "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]},
    "status": {"allocatable": {"cpu": "3920m", "memory": "7Gi", "pods": "110", "example.com/gpu": "2"},
               "features": {"supplementalGroupsPolicy": true},
               "declaredFeatures": ["A", "UserNamespacesHostNetworkSupport", 5]}})")
                        .value();
  CHECK(node.name == "worker-1");
  CHECK(node.labels.at("zone") == "a");
  CHECK(node.taints == std::vector<core::Taint>{{.key = "gpu", .value = "yes", .effect = "NoExecute"}});
  CHECK(node.allocatable.at("cpu").to_string() == "3920m");
  CHECK(node.allocatable.at("example.com/gpu").to_string() == "2");
  CHECK(node.supplemental_groups_policy);
  CHECK(node.declared_features.contains("UserNamespacesHostNetworkSupport"));
}

TEST_CASE("a node that says little is a node without labels, taints and limits") {
  const auto node = parse_node_attributes(R"({"metadata": {"name": "bare"}})").value();
  CHECK(node == core::Node{.name = "bare"});
}

TEST_CASE("what is no node is said to be none") {
  CHECK_FALSE(parse_node_attributes("").has_value());
  CHECK_FALSE(parse_node_attributes("{}").has_value());
  const auto bad = parse_node_attributes(R"({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "many"}}})");
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().message.starts_with("the node read from the API server: status.allocatable.cpu: "));
}

}  // namespace evictd::kube::node_attributes_test
