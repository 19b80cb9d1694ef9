#include "admission/allocation/topology_policy.hpp"

#include <string>
#include <utility>
#include <vector>

#include "admission/allocation/hint.hpp"

namespace evictd::admission {
namespace {

/// Only what a single node can serve, and only where that is as good as it gets.
std::vector<std::vector<Hint>> of_single_nodes(std::vector<std::vector<Hint>> hints) {
  for (auto& resource : hints)
    std::erase_if(resource,
                  [](const Hint& hint) { return !hint.preferred || (hint.affinity && hint.affinity->count() != 1); });
  return hints;
}

}  // namespace

Result<TopologyPolicy> parse_topology_policy(std::string_view name) {
  if (name == "none") return TopologyPolicy::None;
  if (name == "best-effort") return TopologyPolicy::BestEffort;
  if (name == "restricted") return TopologyPolicy::Restricted;
  if (name == "single-numa-node") return TopologyPolicy::SingleNumaNode;
  return fail("unknown policy: \"" + std::string(name) + "\"");
}

Result<TopologyScope> parse_topology_scope(std::string_view name) {
  if (name == "container") return TopologyScope::Container;
  if (name == "pod") return TopologyScope::Pod;
  return fail("invalid scope name: \"" + std::string(name) + "\"");
}

TopologyDecision decide(TopologyPolicy policy, const std::vector<ProviderHints>& providers, const MergeRules& rules) {
  if (policy == TopologyPolicy::None) return {.hint = {}, .admitted = true};
  auto hints = hints_by_resource(providers);
  if (policy != TopologyPolicy::SingleNumaNode) {
    const auto best = merge(hints, rules);
    return {.hint = best, .admitted = best.preferred || policy == TopologyPolicy::BestEffort};
  }
  // The closest of several nodes means nothing where there may be only one.
  auto best = merge(of_single_nodes(std::move(hints)), {.all = rules.all});
  if (best.affinity == rules.all) best.affinity.reset();
  return {.hint = best, .admitted = best.preferred};
}

}  // namespace evictd::admission
