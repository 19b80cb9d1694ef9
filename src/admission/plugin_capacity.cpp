#include "admission/plugin_capacity.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "core/quantity.hpp"

namespace evictd::admission {
namespace {

std::map<std::string, std::set<std::string>> devices_of_pods(const Allocations& allocations) {
  std::map<std::string, std::set<std::string>> result;
  for (const auto& [uid, pod] : allocations)
    for (const auto& [name, container] : pod)
      for (const auto& [resource, ids] : container.devices) result[resource].insert(ids.begin(), ids.end());
  return result;
}

}  // namespace

void add_plugin_capacity(NodeSnapshot& node) {
  if (!node.node) return;
  auto& allocatable = node.node->allocatable;
  for (const auto& [resource, group] : node.plugins.groups)
    allocatable.insert_or_assign(resource, core::Quantity::count(std::ssize(group->healthy)));
  for (const auto& [resource, ids] : devices_of_pods(node.allocations)) {
    if (node.configured_devices.contains(resource)) continue;
    const auto group = node.plugins.groups.find(resource);
    const bool is_served = group != node.plugins.groups.end();
    const std::int64_t healthy = is_served ? std::ssize(group->second->healthy) : 0;
    const std::int64_t others = std::ranges::count_if(
        ids, [&](const std::string& id) { return !is_served || !group->second->healthy.contains(id); });
    auto& amount = allocatable[resource];
    amount = std::max(amount, core::Quantity::count(healthy + others));
  }
}

}  // namespace evictd::admission
