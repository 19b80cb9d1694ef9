#include "admission/predicate_handler.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::admission::predicate_handler_test {
namespace {

using fixture::amounts;
using fixture::container;
using fixture::pod;
using fixture::pods;
using fixture::with_annotation;
using fixture::with_priority;

const core::Node roomy{
    .name = "n1",
    .labels = {{"disk", "ssd"}, {"kubernetes.io/os", "linux"}},
    .allocatable = amounts({{"cpu", "2"}, {"memory", "1000"}, {"ephemeral-storage", "500"}, {"pods", "3"}})};

Verdict admit(const core::Pod& pod, const core::PodList& others = {}, std::optional<core::Node> node = roomy) {
  const NodeSnapshot snapshot{.node = std::move(node)};
  return PredicateHandler{}.admit({.pod = pod, .other_pods = others, .node = snapshot});
}

core::Pod asking(const char* name, fixture::Amounts requests) { return pod(name, {container("main", requests)}); }
core::Pod critical(core::Pod pod) { return with_priority(std::move(pod), 2'000'000'000); }

core::Pod selecting(const char* value) {
  auto result = pod("a");
  result.node_selector = {{"disk", value}};
  return result;
}

core::Pod on_node(const char* name) {
  auto result = pod("a");
  result.node_name = name;
  return result;
}

core::Pod with_port(core::Pod pod) {
  pod.containers[0].host_ports = {{.port = 80}};
  return pod;
}

core::Node tainted(const char* effect) {
  auto node = roomy;
  node.taints = {{.key = "dedicated", .value = "x", .effect = effect}};
  return node;
}

const auto affinity =
    Verdict::reject("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector");
const auto node_name =
    Verdict::reject("NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name");
const auto ports = Verdict::reject(
    "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports");
const auto taints = Verdict::reject(
    "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate");

}  // namespace

TEST_CASE("a pod that asks for nothing is admitted where there is room for one") {
  CHECK(admit(pod("a")) == Verdict::admit());
}

TEST_CASE("a node of which nothing is known admits nobody") {
  const auto rejected = Verdict::reject("InvalidNodeInfo", "Kubelet cannot get node info.");
  CHECK(admit(pod("a"), {}, std::nullopt) == rejected);
  CHECK(admit(critical(pod("a")), {}, std::nullopt) == rejected);
}

TEST_CASE("a pod for another operating system is rejected, critical or not") {
  auto labelled = pod("a");
  labelled.labels = {{"kubernetes.io/os", "windows"}};
  const auto by_label = Verdict::reject("PodOSSelectorNodeLabelDoesNotMatch",
                                        "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label");
  CHECK(admit(labelled) == by_label);
  CHECK(admit(critical(labelled)) == by_label);
  labelled.labels = {{"kubernetes.io/os", "linux"}};
  CHECK(admit(labelled).admitted);

  auto with_field = pod("a");
  with_field.os_name = "windows";
  CHECK(admit(with_field) ==
        Verdict::reject("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"));
  with_field.os_name = "linux";
  CHECK(admit(with_field).admitted);
}

TEST_CASE("a strict policy of supplemental groups needs a node that has one") {
  auto strict = pod("a");
  strict.supplemental_groups_policy = "Strict";
  CHECK(admit(strict) == Verdict::reject("SupplementalGroupsPolicyNotSupported",
                                         "SupplementalGroupsPolicy=Strict is not supported in this node"));
  auto able = roomy;
  able.supplemental_groups_policy = true;
  CHECK(admit(strict, {}, able).admitted);
  strict.supplemental_groups_policy = "Merge";
  CHECK(admit(strict).admitted);
}

TEST_CASE("what there is too little of gives its name to the reason") {
  struct Case {
    const char* resource;
    const char* amount;
    const char* reason;
    const char* message;
  };
  auto node = roomy;
  node.allocatable.emplace("example.com/gpu", core::Quantity::count(1));
  const auto others = pods({asking("b", {{"cpu", "500m"}, {"memory", "100"}, {"example.com/gpu", "1"}})});
  for (const auto& [resource, amount, reason, message] :
       {Case{"cpu", "1501m", "OutOfcpu",
             "Node didn't have enough resource: cpu, requested: 1501, used: 500, capacity: 2000"},
        Case{"memory", "901", "OutOfmemory",
             "Node didn't have enough resource: memory, requested: 901, used: 100, capacity: 1000"},
        Case{"ephemeral-storage", "501", "OutOfephemeral-storage",
             "Node didn't have enough resource: ephemeral-storage, requested: 501, used: 0, capacity: 500"},
        Case{"example.com/gpu", "1", "OutOfexample.com/gpu",
             "Node didn't have enough resource: example.com/gpu, requested: 1, used: 1, capacity: 1"},
        Case{"hugepages-2Mi", "2Mi", "OutOfhugepages-2Mi",
             "Node didn't have enough resource: hugepages-2Mi, requested: 2097152, used: 0, capacity: 0"}})
    CHECK(admit(asking("a", {{resource, amount}}), others, node) == Verdict::reject(reason, message));
  CHECK(admit(pod("a"), pods({pod("b"), pod("c"), pod("d")})) ==
        Verdict::reject("OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"));
}

TEST_CASE("an extended resource that the node has not is not asked for") {
  auto subject = asking("a", {{"example.com/gpu", "8"}});
  subject.init_containers = {container("setup", {{"example.com/nic", "8"}})};
  CHECK(admit(subject) == Verdict::admit());
}

TEST_CASE("a pod for another node is rejected by what it asks for") {
  CHECK(admit(selecting("ssd")).admitted);
  CHECK(admit(selecting("hdd")) == affinity);
  CHECK(admit(on_node("n1")).admitted);
  CHECK(admit(on_node("n2")) == node_name);
  CHECK(admit(with_port(pod("a")), pods({with_port(pod("b"))})) == ports);
}

TEST_CASE("a label of the system that belies the program is put right, if the node has labels at all") {
  auto wants_linux = pod("a");
  wants_linux.node_selector = {{"kubernetes.io/os", "linux"}};
  auto node = roomy;
  node.labels = {{"kubernetes.io/os", "windows"}};
  CHECK(admit(wants_linux, {}, node).admitted);
  node.labels = {{"disk", "ssd"}};
  CHECK(admit(wants_linux, {}, node).admitted);
  node.labels = {};
  CHECK(admit(wants_linux, {}, node) == affinity);
}

TEST_CASE("of taints only NoExecute counts, and for static pods not even that") {
  CHECK(admit(pod("a"), {}, tainted("NoSchedule")).admitted);
  CHECK(admit(pod("a"), {}, tainted("PreferNoSchedule")).admitted);
  CHECK(admit(pod("a"), {}, tainted("NoExecute")) == taints);
  CHECK(admit(critical(pod("a")), {}, tainted("NoExecute")) == taints);
  auto tolerant = pod("a");
  tolerant.tolerations = {{.key = "dedicated", .op = "Equal", .value = "x", .effect = ""}};
  CHECK(admit(tolerant, {}, tainted("NoExecute")).admitted);
  CHECK(admit(with_annotation(pod("a"), "kubernetes.io/config.source", "file"), {}, tainted("NoExecute")).admitted);
  CHECK(admit(with_annotation(pod("a"), "kubernetes.io/config.source", "api"), {}, tainted("NoExecute")) == taints);
}

TEST_CASE("of several reasons the first counts: resources, affinity, name, ports, taints") {
  auto all = with_port(asking("a", {{"memory", "2000"}}));
  all.node_selector = {{"disk", "hdd"}};
  all.node_name = "n2";
  const auto others = pods({with_port(pod("b"))});
  const auto node = tainted("NoExecute");
  CHECK(admit(all, others, node).reason == "OutOfmemory");
  all.containers[0].resources.requests.clear();
  CHECK(admit(all, others, node) == affinity);
  all.node_selector.clear();
  CHECK(admit(all, others, node) == node_name);
  all.node_name.clear();
  CHECK(admit(all, others, node) == ports);
  CHECK(admit(all, {}, node) == taints);
}

TEST_CASE("for a critical pod others go that ask for what it lacks, and it is admitted") {
  const auto others = pods({asking("b", {{"memory", "600"}}), asking("c", {{"memory", "400"}})});
  const auto verdict = admit(critical(asking("a", {{"memory", "300"}})), others);
  CHECK(verdict.admitted);
  CHECK(verdict.reason.empty());
  CHECK(verdict.preempted == core::PodList{others[1]});
  CHECK_FALSE(admit(asking("a", {{"memory", "300"}}), others).admitted);
}

TEST_CASE("a critical pod makes room for itself where there are too many pods") {
  const auto others = pods({asking("b", {{"memory", "1"}}), pod("c"), pod("d")});
  CHECK(admit(critical(pod("a")), others).preempted == core::PodList{others[2]});
}

TEST_CASE("a critical pod that others cannot make room for is rejected in the kubelet's words") {
  const auto others = pods({critical(asking("b", {{"memory", "900"}})), asking("c", {{"memory", "50"}})});
  CHECK(admit(critical(asking("a", {{"memory", "200"}, {"cpu", "3"}})), others) ==
        Verdict::reject("UnexpectedAdmissionError",
                        "Unexpected error while attempting to recover from admission failure: preemption: error "
                        "finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: "
                        "cpu, q: 1000), (res: memory, q: 100), ]"));
}

TEST_CASE("no one goes for a critical pod that is rejected for another reason as well, and that one is told") {
  auto subject = critical(asking("a", {{"memory", "2000"}}));
  subject.node_selector = {{"disk", "hdd"}};
  const auto verdict = admit(subject, pods({asking("b", {{"memory", "900"}})}));
  CHECK(verdict == affinity);
  CHECK(verdict.preempted.empty());
}

}  // namespace evictd::admission::predicate_handler_test
