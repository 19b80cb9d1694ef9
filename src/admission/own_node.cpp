#include "admission/own_node.hpp"

#include <algorithm>
#include <string_view>

namespace evictd::admission {
namespace {

using core::Quantity;
using core::ResourceList;

constexpr std::string_view built_for() {
#if defined(__x86_64__)
  return "amd64";
#elif defined(__aarch64__)
  return "arm64";
#elif defined(__arm__)
  return "arm";
#elif defined(__i386__)
  return "386";
#elif defined(__powerpc64__)
  return "ppc64le";
#elif defined(__s390x__)
  return "s390x";
#elif defined(__riscv)
  return "riscv64";
#else
  return "unknown";
#endif
}

Quantity amount(const ResourceList& list, std::string_view resource) {
  const auto found = list.find(resource);
  return found == list.end() ? Quantity{} : found->second;
}

/// What hard thresholds keep free of a resource. The last one of a signal counts.
Quantity kept_free(std::span<const core::Threshold> thresholds, std::string_view resource, const Quantity& capacity) {
  Quantity result;
  for (const auto& threshold : thresholds) {
    const bool is_memory = resource == "memory" && threshold.signal == core::Signal::MemoryAvailable;
    const bool is_disk = resource == "ephemeral-storage" && threshold.signal == core::Signal::NodefsAvailable;
    if (threshold.is_hard() && (is_memory || is_disk)) result = Quantity::bytes(threshold.value.of(capacity.value()));
  }
  return result;
}

void subtract(Quantity& from, const Quantity& other) {
  from -= other;
  if (from.is_negative()) from = Quantity{};
}

ResourceList allocatable(const OwnNodeFacts& facts) {
  ResourceList result;
  for (const auto& [resource, capacity] : facts.capacity) {
    auto rest = capacity;
    subtract(rest, amount(facts.kube_reserved, resource) + amount(facts.system_reserved, resource) +
                       kept_free(facts.thresholds, resource, capacity));
    result.emplace(resource, rest);
  }
  if (const auto memory = result.find("memory"); memory != result.end())
    for (const auto& [resource, pages] : facts.capacity)
      if (resource.starts_with("hugepages-")) subtract(memory->second, pages);
  result.insert_or_assign("pods", Quantity::count(facts.max_pods));
  for (const auto& device : facts.devices) result[device.resource] += Quantity::count(1);
  return result;
}

}  // namespace

Node own_node(const OwnNodeFacts& facts) {
  const std::string architecture = facts.architecture.empty() ? std::string(built_for()) : facts.architecture;
  Node node{.name = facts.name,
            .labels = {{"beta.kubernetes.io/arch", architecture},
                       {"beta.kubernetes.io/os", facts.os},
                       {"kubernetes.io/arch", architecture},
                       {"kubernetes.io/hostname", facts.name},
                       {"kubernetes.io/os", facts.os}},
            .taints = facts.taints,
            .allocatable = allocatable(facts)};
  for (const auto& [key, value] : facts.labels) node.labels.insert_or_assign(key, value);
  return node;
}

}  // namespace evictd::admission
