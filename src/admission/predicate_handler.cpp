#include "admission/predicate_handler.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/host_ports.hpp"
#include "admission/node_affinity.hpp"
#include "admission/node_snapshot.hpp"
#include "admission/preemption.hpp"
#include "admission/resource_fit.hpp"
#include "admission/taint.hpp"
#include "core/node.hpp"
#include "core/pod.hpp"

namespace evictd::admission {
namespace {

constexpr std::string_view os_label = "kubernetes.io/os";
constexpr std::string_view own_os = "linux";  // what evictd is built for

/// What stands against the pod, in the kubelet's order.
struct Findings {
  std::vector<InsufficientResource> resources{};
  std::vector<Verdict> others{};

  [[nodiscard]] bool empty() const { return resources.empty() && others.empty(); }
};

Verdict rejection(const InsufficientResource& lack) {
  return Verdict::reject("OutOf" + lack.resource, "Node didn't have enough resource: " + lack.resource +
                                                      ", requested: " + std::to_string(lack.requested) +
                                                      ", used: " + std::to_string(lack.used) +
                                                      ", capacity: " + std::to_string(lack.capacity));
}

Verdict failed_predicate(const std::string& name, const std::string& description) {
  return Verdict::reject(name, "Predicate " + name + " failed: " + description);
}

/// Where no preemption would help.
std::optional<Verdict> wrong_system(const core::Pod& pod, const core::Node& node) {
  if (const auto label = pod.labels.find(os_label); label != pod.labels.end() && label->second != own_os)
    return Verdict::reject("PodOSSelectorNodeLabelDoesNotMatch",
                           "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label");
  if (!pod.os_name.empty() && pod.os_name != own_os)
    return Verdict::reject("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS");
  if (pod.supplemental_groups_policy == "Strict" && !node.supplemental_groups_policy)
    return Verdict::reject("SupplementalGroupsPolicyNotSupported",
                           "SupplementalGroupsPolicy=Strict is not supported in this node");
  return std::nullopt;
}

/// The kubelet puts right a label that belies the system it was built for, if the node has labels at all.
Labels effective_labels(Labels labels) {
  if (!labels.empty()) labels.insert_or_assign(std::string(os_label), std::string(own_os));
  return labels;
}

bool tolerates_all(const core::Pod& pod, const std::vector<core::Taint>& taints) {
  return std::ranges::all_of(
      taints, [&](const core::Taint& taint) { return taint.effect != "NoExecute" || tolerates(pod, taint); });
}

Findings findings(const Attributes& attributes, const core::Node& node) {
  const auto pod = without_missing_extended_resources(attributes.pod, node.allocatable);
  Findings found{.resources = insufficient_resources(pod, attributes.other_pods, node.allocatable)};
  if (!matches_node(pod, node.name, effective_labels(node.labels)))
    found.others.push_back(failed_predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"));
  if (!pod.node_name.empty() && pod.node_name != node.name)
    found.others.push_back(failed_predicate("NodeName", "node(s) didn't match the requested node name"));
  if (has_port_conflict(pod, attributes.other_pods))
    found.others.push_back(failed_predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports"));
  if (!core::is_static(pod) && !tolerates_all(pod, node.taints))
    found.others.push_back(failed_predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate"));
  return found;
}

Verdict with_preemption(const Attributes& attributes, const std::vector<InsufficientResource>& resources) {
  Requirements requirements;
  for (const auto& lack : resources) requirements.push_back({.resource = lack.resource, .quantity = lack.missing()});
  auto victims = pods_to_preempt(attributes.pod, attributes.other_pods, requirements);
  if (!victims)
    return Verdict::reject("UnexpectedAdmissionError",
                           "Unexpected error while attempting to recover from admission failure: preemption: error "
                           "finding a set of pods to preempt: " +
                               victims.error().message);
  Verdict verdict;
  verdict.preempted = *std::move(victims);
  return verdict;
}

}  // namespace

Verdict PredicateHandler::admit(const Attributes& attributes) {
  const auto& node = attributes.node.node;
  if (!node) return Verdict::reject("InvalidNodeInfo", "Kubelet cannot get node info.");
  if (auto verdict = wrong_system(attributes.pod, *node)) return *std::move(verdict);

  const auto found = findings(attributes, *node);
  if (found.empty()) return Verdict::admit();
  const bool may_preempt = core::is_critical(attributes.pod) && attributes.operation != Operation::Resize;
  // For a critical pod resources are made available, so what else is wrong decides.
  if (!may_preempt && !found.resources.empty()) return rejection(found.resources.front());
  if (!found.others.empty()) return found.others.front();
  return with_preemption(attributes, found.resources);
}

}  // namespace evictd::admission
