#include "admission/own_node.hpp"

#include <string_view>

#include "admission/node_reservation.hpp"
#include "core/quantity.hpp"

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

void subtract(Quantity& from, const Quantity& other) {
  from -= other;
  if (from.is_negative()) from = Quantity{};
}

ResourceList allocatable(const OwnNodeFacts& facts) {
  auto result = facts.capacity;
  for (const auto& [resource, reserved] :
       node_reservation(facts.capacity, facts.kube_reserved, facts.system_reserved, facts.thresholds))
    subtract(result[resource], reserved);
  if (const auto memory = result.find("memory"); memory != result.end())
    for (const auto& [resource, pages] : facts.capacity)
      if (resource.starts_with("hugepages-")) subtract(memory->second, pages);
  result.insert_or_assign("pods", Quantity::count(facts.max_pods));
  for (const auto& device : facts.devices) result[device.resource] += Quantity::count(1);
  return result;
}

}  // namespace

core::Node own_node(const OwnNodeFacts& facts) {
  const std::string architecture = facts.architecture.empty() ? std::string(built_for()) : facts.architecture;
  core::Node node{.name = facts.name,
                  .labels = {{"beta.kubernetes.io/arch", architecture},
                             {"beta.kubernetes.io/os", "linux"},
                             {"kubernetes.io/arch", architecture},
                             {"kubernetes.io/hostname", facts.name},
                             {"kubernetes.io/os", "linux"}},
                  .taints = facts.taints,
                  .allocatable = allocatable(facts)};
  for (const auto& [key, value] : facts.labels) node.labels.insert_or_assign(key, value);
  return node;
}

}  // namespace evictd::admission
