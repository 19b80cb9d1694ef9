#include "simulate/scenario_node.hpp"

#include <doctest/doctest.h>

#include "admission/chain.hpp"
#include "fixture/pods.hpp"

namespace evictd::simulate::scenario_node_test {
namespace {

using fixture::container;
using fixture::error_of;
using fixture::pod;
using fixture::quantity;
using fixture::value_of;

ScenarioNode node(std::string_view text) {
  return value_of(read_scenario_node(value_of(config::parse_yaml(text, "s.yaml"))));
}

std::string error(std::string_view text) {
  return error_of(read_scenario_node(value_of(config::parse_yaml(text, "s.yaml"))));
}

/// The reason for which the chain rejects; "" where it admits.
std::string reason(const core::Pod& asked, const ScenarioNode& node, const core::PodList& others = {},
                   std::int64_t max_pods = 110) {
  const auto subject = judgeable(asked, node);
  const auto snapshot = snapshot_for(subject, node, max_pods);
  const auto chain = value_of(admission::kubelet_chain());
  return chain.admit({.pod = subject, .other_pods = others, .node = snapshot}).verdict.reason;
}

/// Asks for something of everything.
core::Pod demanding() {
  auto result = pod("a", {container("main", {{"cpu", "1000000"},
                                             {"memory", "1Ei"},
                                             {"ephemeral-storage", "1Ei"},
                                             {"hugepages-2Mi", "1Gi"},
                                             {"example.com/gpu", "64"}})});
  result.node_name = "n7";
  result.node_selector = {{"disk", "ssd"}};
  result.required_node_affinity.emplace();
  result.supplemental_groups_policy = "Strict";
  result.app_armor_profile = core::AppArmorProfile{.type = "RuntimeDefault"};
  result.sysctls = {"net.ipv4.tcp_rmem"};
  return result;
}

}  // namespace

TEST_CASE("a node of which nothing is said keeps no pod away") {
  CHECK(reason(demanding(), {}) == "");
  CHECK(reason(demanding(), {}, fixture::pods({demanding(), demanding()})) == "");
}

TEST_CASE("what is said of a node is what pods are asked for") {
  CHECK(reason(demanding(), node("{name: n1}")) == "NodeName");
  CHECK(reason(demanding(), node("{labels: {disk: ssd}}")) == "NodeAffinity");  // an affinity that nothing fulfils
  CHECK(reason(demanding(), node("{labels: {}}")) == "NodeAffinity");
  CHECK(reason(demanding(), node("{allocatable: {cpu: 8}}")) == "OutOfcpu");
  CHECK(reason(demanding(), node("{allocatable: {memory: 8Gi}}")) == "OutOfmemory");
  CHECK(reason(demanding(), node("{allocatable: {ephemeral-storage: 8Gi}}")) == "OutOfephemeral-storage");
  CHECK(reason(demanding(), node("{allocatable: {hugepages-2Mi: 512Mi}}")) == "OutOfhugepages-2Mi");
  CHECK(reason(demanding(), node("{allocatable: {example.com/gpu: 8}}")) == "OutOfexample.com/gpu");
  CHECK(reason(demanding(), node("{devices: [example.com/gpu=g0, example.com/gpu=g1@0]}")) == "OutOfexample.com/gpu");
  CHECK(reason(demanding(), node("{allocatable: {pods: 0}}")) == "OutOfpods");
  CHECK(reason(demanding(), node("{taints: [{key: a, value: b, effect: NoExecute}]}")) == "TaintToleration");
  CHECK(reason(demanding(), node("{supplementalGroupsPolicy: false}")) == "SupplementalGroupsPolicyNotSupported");
  CHECK(reason(demanding(), node("{appArmor: false}")) == "AppArmor");
  CHECK(reason(demanding(), node("{kernelVersion: 4.14.336}")) == "SysctlForbidden");
  CHECK(reason(demanding(), node("{kernelVersion: \"\"}")) == "SysctlForbidden");
  CHECK(reason(demanding(), node("{kernelVersion: 4.15.0}")) == "");
  CHECK(reason(demanding(), node("{shuttingDown: true}")) == "NodeShutdown");
}

TEST_CASE("a feature that is not declared is not there") {
  auto asked = pod("a");
  asked.host_network = true;
  asked.host_users = false;
  CHECK(reason(asked, {}) == "PodFeatureUnsupported");
  CHECK(reason(asked, node("{declaredFeatures: [UserNamespacesHostNetworkSupport]}")) == "");
}

TEST_CASE("of pods a node takes as many as its configuration says, where it does not say so itself") {
  const auto one = fixture::pods({pod("b")});
  CHECK(reason(pod("a"), {}, one, 1) == "OutOfpods");
  CHECK(reason(pod("a"), {}, one, 2) == "");
  CHECK(reason(pod("a"), node("{allocatable: {pods: 2}}"), one, 1) == "");
}

TEST_CASE("all that is said of a node is read") {
  const auto read = node(R"(
dedicatedImageFs: true
splitContainerImageFs: true
name: n1
labels: {disk: ssd}
taints: [{key: dedicated, value: x, effect: NoExecute}]
allocatable: {cpu: 2, memory: 4Gi}
kernelVersion: 6.1.0
topology: {sockets: 2}
devices: [example.com/gpu=g0@0-1]
)");
  CHECK(read.layout == core::FilesystemLayout{.dedicated_imagefs = true, .split = true});
  CHECK(read.name == "n1");
  CHECK(read.labels->at("disk") == "ssd");
  CHECK(read.taints == std::vector<core::Taint>{{.key = "dedicated", .value = "x", .effect = "NoExecute"}});
  CHECK(read.allocatable.at("memory") == quantity("4Gi"));
  CHECK(read.kernel_version == "6.1.0");
  CHECK(read.topology->cpus.size() == 2);
  CHECK(read.devices ==
        std::vector<admission::Device>{{.resource = "example.com/gpu", .id = "g0", .numa_nodes = {0, 1}}});
}

TEST_CASE("an error names file, line and key") {
  CHECK(error("allocatible: {}") == "s.yaml:1: allocatible: unknown key; did you mean \"allocatable\"?");
  CHECK(error("allocatable: {memory: -1}") == "s.yaml:1: allocatable: memory: \"-1\" must not be negative");
  CHECK(error("taints: [{effekt: x}]") == "s.yaml:1: taints[0].effekt: unknown key; did you mean \"effect\"?");
  CHECK(error("devices: [gpu0]") == "s.yaml:1: devices[0]: \"gpu0\" is no device such as example.com/gpu=gpu0@0");
  CHECK(error("topology: {sockets: 0}") == "s.yaml:1: topology: sockets must be 1 to 4096, not 0");
}

}  // namespace evictd::simulate::scenario_node_test
