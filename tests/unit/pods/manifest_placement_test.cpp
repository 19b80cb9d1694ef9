#include "pods/manifest_placement.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"
#include "pods/manifest.hpp"

namespace evictd::pods::manifest_placement_test {
namespace {

using fixture::error_of;
using fixture::value_of;

/// A pod with more in its spec than a name and a container.
core::Pod with_spec(const std::string& spec) {
  return value_of(parse_pods("metadata: {name: a}\nspec:\n  containers: [{name: main}]\n" + spec, "pod.yaml")).at(0);
}

core::Container with_container(const std::string& container, const std::string& spec = "") {
  const auto pods = value_of(
      parse_pods("metadata: {name: a}\nspec:\n  containers:\n  - {name: main, " + container + "}\n" + spec, "p"));
  return pods.at(0).containers.at(0);
}

/// What is wrong with what stands in line 4 of a pod.
std::string spec_error(const std::string& line) {
  return error_of(parse_pods("metadata: {name: a}\nspec:\n  containers: [{name: main}]\n  " + line, "pod.yaml"));
}

std::string ports_error(const std::string& ports) {
  return error_of(parse_pods("metadata: {name: a}\nspec:\n  containers:\n  - name: m\n    ports: " + ports, "p.yaml"));
}

using Ports = std::vector<core::HostPort>;

}  // namespace

TEST_CASE("a pod that says nothing of where it may run may run anywhere") {
  auto plain = fixture::pod("a");
  plain.uid = "";
  CHECK(with_spec("") == plain);
}

TEST_CASE("all that decides on which node a pod may run is read from its spec") {
  const auto pod = with_spec(R"(
  nodeName: n1
  nodeSelector: {disk: ssd, example.com/zone: a}
  os: {name: linux}
  hostNetwork: true
  hostIPC: true
  hostUsers: false
  hostPID: true
  securityContext:
    runAsUser: 5
    sysctls: [{name: net.core.somaxconn, value: "1024"}, {name: kernel/shmmax, value: "1"}]
    supplementalGroupsPolicy: Strict
    appArmorProfile: {type: RuntimeDefault}
)");
  CHECK(pod.node_name == "n1");
  CHECK(pod.node_selector.size() == 2);
  CHECK(pod.node_selector.at("example.com/zone") == "a");
  CHECK(pod.os_name == "linux");
  CHECK(pod.host_network);
  CHECK(pod.host_ipc);
  CHECK_FALSE(pod.host_users);
  CHECK(pod.sysctls == std::vector<std::string>{"net.core.somaxconn", "kernel/shmmax"});
  CHECK(pod.supplemental_groups_policy == "Strict");
  CHECK(pod.app_armor_profile == core::AppArmorProfile{.type = "RuntimeDefault"});
  CHECK_FALSE(pod.required_node_affinity.has_value());
}

TEST_CASE("of the affinity only what a node must fulfil counts, term by term") {
  const auto pod = with_spec(R"(
  affinity:
    podAntiAffinity: {}
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: []
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: disk, operator: In, values: [ssd, nvme]}, {key: gpu, operator: Exists}]
        - matchFields: [{key: metadata.name, operator: In, values: [n1]}]
        - {}
        - ~
)");
  using Requirement = core::NodeSelectorRequirement;
  CHECK(pod.required_node_affinity ==
        core::NodeSelector{{.match_expressions = {Requirement{.key = "disk", .op = "In", .values = {"ssd", "nvme"}},
                                                  Requirement{.key = "gpu", .op = "Exists"}}},
                           {.match_fields = {Requirement{.key = "metadata.name", .op = "In", .values = {"n1"}}}},
                           {},
                           {}});
  CHECK_FALSE(with_spec("  affinity: {nodeAffinity: {}}").required_node_affinity.has_value());
  CHECK(with_spec("  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}")
            .required_node_affinity == core::NodeSelector{});
}

TEST_CASE("only ports of the node are kept") {
  CHECK(with_container("ports: [{containerPort: 80}, {containerPort: 53, hostPort: 5353, protocol: UDP}, "
                       "{containerPort: 1, hostPort: 81, hostIP: 127.0.0.1}]")
            .host_ports == Ports{{.protocol = "UDP", .port = 5353}, {.ip = "127.0.0.1", .port = 81}});
}

TEST_CASE("on the node's own network every port is one of the node, wherever the spec says so") {
  const auto* ports = "ports: [{containerPort: 80}, {containerPort: 53, hostPort: 53, protocol: SCTP}]";
  CHECK(with_container(ports, "  hostNetwork: true").host_ports ==
        Ports{{.port = 80}, {.protocol = "SCTP", .port = 53}});
  const auto init = value_of(parse_pods(
      "metadata: {name: a}\nspec: {hostNetwork: true, initContainers: [{name: i, ports: [{containerPort: 8}]}], "
      "containers: [{name: m}]}",
      "p"));
  CHECK(init.at(0).init_containers.at(0).host_ports == Ports{{.port = 8}});
}

TEST_CASE("a container has an AppArmor profile of its own") {
  CHECK(with_container("securityContext: {privileged: true, appArmorProfile: {type: Localhost, localhostProfile: web}}")
            .app_armor_profile == core::AppArmorProfile{.type = "Localhost", .localhost_profile = "web"});
  CHECK_FALSE(with_container("securityContext: {privileged: true}").app_armor_profile.has_value());
}

TEST_CASE("the phase and its reason are read from the status") {
  const auto pods =
      value_of(parse_pods("{metadata: {name: a}, spec: {containers: [{name: m}]}, status: {phase: Failed, reason: "
                          "Evicted}}",
                          "p"));
  CHECK(pods.at(0).phase == "Failed");
  CHECK(pods.at(0).reason == "Evicted");
}

TEST_CASE("a bad value is one line that names file, line and key") {
  CHECK(ports_error("[{containerPort: 80, hostPort: 70000}]") ==
        "p.yaml:5: spec.containers[0].ports[0].hostPort: \"70000\" is out of range: 0 to 65535");
  CHECK(ports_error("[{containerPort: 80, protocol: http}]") ==
        "p.yaml:5: spec.containers[0].ports[0].protocol: \"http\" is none of TCP, UDP, SCTP");
  CHECK(ports_error("80") == "p.yaml:5: spec.containers[0].ports: \"80\" stands where a list is expected");
  CHECK(spec_error("hostNetwork: maybe") == "pod.yaml:4: spec.hostNetwork: \"maybe\" is not true or false");
  CHECK(spec_error("nodeSelector: [a]") == "pod.yaml:4: spec.nodeSelector: a list stands where a mapping is expected");
  CHECK(spec_error("securityContext: {sysctls: [{value: 1}]}") ==
        "pod.yaml:4: spec.securityContext.sysctls[0]: name is missing");
  const std::string term =
      "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
      "[{matchExpressions: [";
  const std::string path =
      "pod.yaml:4: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
      "matchExpressions[0]";
  CHECK(spec_error(term + "{key: a, operator: in}]}]}}}") ==
        path + ".operator: \"in\" is none of In, NotIn, Exists, DoesNotExist, Gt, Lt");
  CHECK(spec_error(term + "{key: a}]}]}}}") == path + ": operator is missing");
}

TEST_CASE("a spec's word on where a pod may run replaces all that was known of it") {
  auto target = fixture::pod("a");
  target.host_network = true;
  target.sysctls = {"net.core.somaxconn"};
  auto spec = fixture::pod("b");
  spec.node_name = "n1";
  spec.node_selector = {{"disk", "ssd"}};
  spec.required_node_affinity.emplace();
  spec.os_name = "linux";
  spec.host_ipc = true;
  spec.host_users = false;
  spec.supplemental_groups_policy = "Strict";
  spec.app_armor_profile = core::AppArmorProfile{.type = "Unconfined"};
  take_placement(target, spec);
  auto expected = spec;
  expected.name = expected.uid = "a";
  CHECK(target == expected);
}

}  // namespace evictd::pods::manifest_placement_test
