#include "admission/allocation/memory_manager.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "admission/allocation/memory_allocation.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "core/quantity.hpp"

namespace evictd::admission {
namespace {

core::Quantity amount(const core::ResourceList& list, const std::string& resource) {
  const auto found = list.find(resource);
  return found == list.end() ? core::Quantity{} : found->second;
}

/// What is kept back on all nodes must be what Node Allocatable keeps back. (kubelet: validateReservedMemory)
Result<void> check_reservations(const AllocationSettings& settings) {
  const auto nodes = settings.topology.all_numa_nodes();
  core::ResourceList total;
  for (const auto& reservation : settings.reserved_memory) {
    if (!nodes.contains(reservation.numa_node))
      return fail("the reserved memory configuration references a NUMA node " + std::to_string(reservation.numa_node) +
                  " that does not exist on this machine");
    for (const auto& [resource, quantity] : reservation.limits) total[resource] += quantity;
  }
  std::set<std::string> resources;
  for (const auto& [resource, quantity] : total) resources.insert(resource);
  for (const auto& [resource, quantity] : settings.reserved)
    if (is_memory_kind(resource)) resources.insert(resource);
  for (const auto& resource : resources) {
    const auto here = amount(total, resource);
    const auto there = amount(settings.reserved, resource);
    if (here != there)
      return fail("the total amount \"" + here.to_string() + "\" of type \"" + resource +
                  "\" is not equal to the value \"" + there.to_string() + "\" determined by Node Allocatable feature");
  }
  if (amount(total, "memory").value() <= 0) return fail("you should specify the system reserved memory");
  return {};
}

}  // namespace

Result<std::unique_ptr<MemoryManager>> MemoryManager::make(const AllocationSettings& settings) {
  if (settings.memory_policy == "None") return nullptr;
  if (settings.memory_policy != "Static")
    return fail("memoryManagerPolicy: unknown policy: \"" + settings.memory_policy + "\"");
  if (settings.topology.numa_nodes.empty()) return fail("memoryManagerPolicy: the machine's topology is not known");
  if (auto reserved = check_reservations(settings); !reserved) return fail(reserved.error(), "reservedMemory");

  std::unique_ptr<MemoryManager> manager{new MemoryManager};
  for (const auto& node : settings.topology.numa_nodes) {
    std::int64_t huge = 0;
    for (const auto& [resource, bytes] : node.memory)
      if (resource != "memory") huge += bytes;
    for (const auto& [resource, bytes] : node.memory) {
      std::int64_t reserved = 0;
      for (const auto& reservation : settings.reserved_memory)
        if (reservation.numa_node == node.id) reserved += amount(reservation.limits, resource).value();
      const auto left = bytes - reserved - (resource == "memory" ? huge : 0);
      manager->allocatable_[node.id][resource] = std::max<std::int64_t>(left, 0);
      manager->basis_["numaNode" + std::to_string(node.id) + "." + resource] =
          std::to_string(bytes) + " bytes, " + std::to_string(reserved) + " of them reserved";
    }
    manager->allocatable_.try_emplace(node.id);
  }
  return manager;
}

std::unique_ptr<Allocation> MemoryManager::begin(const core::Pod& pod, const Allocations& others) const {
  MemoryState state{allocatable_};
  for (const auto& [uid, containers] : others)
    for (const auto& [name, container] : containers)
      for (const auto& block : container.memory) state.give(block);
  return std::make_unique<MemoryAllocation>(std::move(state), pod);
}

Result<void> MemoryManager::check(const Allocations& allocations) const {
  MemoryState state{allocatable_};
  for (const auto& [uid, containers] : allocations)
    for (const auto& [name, container] : containers)
      for (const auto& block : container.memory) {
        if (auto right = state.check(block); !right) return fail(right.error(), "pod " + uid + ", container " + name);
        state.give(block);
      }
  return {};
}

std::map<std::string, std::string, std::less<>> MemoryManager::basis() const { return basis_; }

}  // namespace evictd::admission
