#include "simulate/scenario_node.hpp"

#include <limits>
#include <string_view>
#include <utility>

#include "admission/resource_fit.hpp"
#include "config/fields.hpp"
#include "config/key_kinds.hpp"
#include "config/node_inventory.hpp"
#include "core/quantity.hpp"
#include "simulate/scenario_topology.hpp"

namespace evictd::simulate {
namespace {

using config::Field;
using config::into;
using config::read_amount;
using config::read_fields;
using config::UnknownKeys;
using config::Value;
using N = ScenarioNode;

/// Newer than any that a sysctl asks for.
constexpr std::string_view new_kernel = "9999.0";
constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

Result<void> read_dedicated(const Value& value, N& node) { return config::read(value, node.layout.dedicated_imagefs); }
Result<void> read_split(const Value& value, N& node) { return config::read(value, node.layout.split); }

Result<void> read_taint(const Value& value, core::Taint& target) {
  using T = core::Taint;
  static constexpr Field<T> fields[]{{"key", into<&T::key>}, {"value", into<&T::value>}, {"effect", into<&T::effect>}};
  return read_fields(value, target, fields, UnknownKeys::reject);
}

Result<void> read_allocatable(const Value& value, core::ResourceList& target) {
  return config::read_map<read_amount>(value, target);
}

Result<void> read_machine(const Value& value, std::optional<admission::MachineTopology>& target) {
  return config::store(read_topology(value), target.emplace());
}

Result<void> read_devices(const Value& value, std::vector<admission::Device>& target) {
  const config::kinds::ListOf<admission::Device> devices{"devices", config::parse_device, config::print_device};
  return config::store(devices.read(value), target);
}

/// Adds an amount that no pod exceeds, where the scenario does not name the resource.
void add_unlimited(core::ResourceList& allocatable, const std::string& resource) {
  // CPU is counted in thousandths.
  const auto amount = resource == "cpu" ? core::Quantity::count(unlimited / 1000) : core::Quantity::bytes(unlimited);
  allocatable.try_emplace(resource, amount);
}

core::ResourceList allocatable_for(const core::Pod& pod, const ScenarioNode& node, std::int64_t max_pods) {
  auto result = node.allocatable;
  core::ResourceList counted;
  for (const auto& device : node.devices) counted[device.resource] += core::Quantity::count(1);
  result.merge(counted);
  result.try_emplace("pods", core::Quantity::count(max_pods));
  for (const auto* resource : {"cpu", "memory", "ephemeral-storage"}) add_unlimited(result, resource);
  // Extended resources that the node has not are not asked for; Kubernetes' own, such as huge pages, are.
  const auto add_native = [&](const core::ResourceList& requests) {
    for (const auto& [resource, amount] : requests)
      if (!admission::is_extended_resource(resource)) add_unlimited(result, resource);
  };
  for (const auto* containers : {&pod.init_containers, &pod.containers})
    for (const auto& container : *containers) add_native(container.resources.requests);
  if (pod.resources) add_native(pod.resources->requests);
  add_native(pod.overhead);
  return result;
}

}  // namespace

Result<ScenarioNode> read_scenario_node(const Value& value) {
  static constexpr Field<N> fields[]{{"dedicatedImageFs", read_dedicated},
                                     {"splitContainerImageFs", read_split},
                                     {"name", into<&N::name>},
                                     {"labels", into<&N::labels>},
                                     {"taints", into<&N::taints, config::read_list<read_taint, core::Taint>>},
                                     {"allocatable", into<&N::allocatable, read_allocatable>},
                                     {"kernelVersion", into<&N::kernel_version>},
                                     {"supplementalGroupsPolicy", into<&N::supplemental_groups_policy>},
                                     {"appArmor", into<&N::app_armor>},
                                     {"shuttingDown", into<&N::shutting_down>},
                                     {"declaredFeatures", into<&N::declared_features>},
                                     {"topology", into<&N::topology, read_machine>},
                                     {"devices", into<&N::devices, read_devices>}};
  ScenarioNode node;
  if (auto result = read_fields(value, node, fields, UnknownKeys::reject); !result)
    return std::unexpected(result.error());
  return node;
}

core::Pod judgeable(core::Pod pod, const ScenarioNode& node) {
  if (node.name.empty()) pod.node_name.clear();
  if (!node.labels) {
    pod.node_selector.clear();
    pod.required_node_affinity.reset();
  }
  return pod;
}

admission::NodeSnapshot snapshot_for(const core::Pod& pod, const ScenarioNode& node, std::int64_t max_pods) {
  core::Node described{.name = node.name,
                       .labels = node.labels.value_or(ScenarioNode::Labels{}),
                       .taints = node.taints,
                       .allocatable = allocatable_for(pod, node, max_pods),
                       .supplemental_groups_policy = node.supplemental_groups_policy,
                       .declared_features = {node.declared_features.begin(), node.declared_features.end()}};
  return {.node = std::move(described),
          .kernel_version = node.kernel_version.value_or(std::string(new_kernel)),
          .app_armor = {.enabled = node.app_armor},
          .shutting_down = node.shutting_down};
}

}  // namespace evictd::simulate
