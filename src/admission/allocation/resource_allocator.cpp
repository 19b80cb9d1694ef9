#include "admission/allocation/resource_allocator.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "admission/allocation/device_manager.hpp"
#include "admission/allocation/hint.hpp"
#include "admission/allocation/hint_merge.hpp"
#include "admission/allocation/machine_topology.hpp"
#include "admission/allocation/memory_manager.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/number.hpp"
#include "core/pod.hpp"

namespace evictd::admission {
namespace {

/// Every set of nodes is a hint; beyond this number the kubelet requires an option to be set.
constexpr int default_numa_nodes = 8;
/// 65535 sets of nodes, 65 ms of CPU time for each container (with 8 nodes 0.4 ms): no further, whatever is asked for.
constexpr int most_numa_nodes = 16;

struct TopologyOptions {
  bool prefer_closest = false;
  int max_numa_nodes = default_numa_nodes;
};

Result<TopologyOptions> parse_topology_options(const PolicyOptions& options) {
  TopologyOptions result;
  for (const auto& [name, value] : options) {
    if (name == "prefer-closest-numa-nodes") {
      const auto on = parse_option(name, value);
      if (!on) return std::unexpected(on.error());
      result.prefer_closest = *on;
    } else if (name == "max-allowable-numa-nodes") {
      const auto most = core::whole_number<int>(value);
      if (!most) return fail("unable to convert policy option to integer \"" + name + "\": \"" + value + "\"");
      result.max_numa_nodes = *most;
      if (result.max_numa_nodes < default_numa_nodes)
        return fail("the minimum value of \"" + name + "\" should not be less than " +
                    std::to_string(default_numa_nodes));
    } else {
      return fail("unknown Topology Manager Policy option: \"" + name + "\"");
    }
  }
  return result;
}

/// Whether nodes lie close to each other can be decided only where distances are known.
bool knows_distances(const MachineTopology& machine) {
  return std::ranges::all_of(machine.numa_nodes, [&](const NumaNode& node) {
    return std::ranges::all_of(machine.numa_nodes,
                               [&](const NumaNode& other) { return node.distances.contains(other.id); });
  });
}

Result<void> check_machine(const MachineTopology& machine, const TopologyOptions& options) {
  if (machine.numa_nodes.empty()) return fail("the machine's topology is not known");
  const auto nodes = static_cast<int>(machine.numa_nodes.size());
  if (nodes > options.max_numa_nodes)
    return fail("unsupported on machines with more than " + std::to_string(options.max_numa_nodes) + " NUMA Nodes");
  if (options.prefer_closest && !knows_distances(machine))
    return fail("prefer-closest-numa-nodes: the distances between the NUMA nodes are not known");
  return {};
}

/// Policies whose hints are sets of nodes.
Result<void> check_numa_nodes(const AllocationSettings& settings, TopologyPolicy topology_policy) {
  if (settings.topology.numa_nodes.size() <= most_numa_nodes) return {};
  const auto limit = "evictd works out at most " + std::to_string(most_numa_nodes) + " NUMA nodes";
  if (topology_policy != TopologyPolicy::None) return fail("topologyManagerPolicy: " + limit);
  if (settings.memory_policy != "None") return fail("memoryManagerPolicy: " + limit);
  return {};
}

std::int64_t devices_held(const ContainerAllocation& held, const std::string& resource) {
  const auto found = held.devices.find(resource);
  return found == held.devices.end() ? 0 : std::ssize(found->second);
}

}  // namespace

Result<ResourceAllocator> ResourceAllocator::make(const AllocationSettings& settings) {
  ResourceAllocator result;
  const auto policy = parse_topology_policy(settings.topology_policy);
  if (!policy) return fail(policy.error(), "topologyManagerPolicy");
  const auto scope = parse_topology_scope(settings.topology_scope);
  if (!scope) return fail(scope.error(), "topologyManagerScope");
  const auto options = parse_topology_options(settings.topology_options);
  if (!options) return fail(options.error(), "topologyManagerPolicyOptions");
  if (policy != TopologyPolicy::None)
    if (auto machine = check_machine(settings.topology, *options); !machine)
      return fail(machine.error(), "topologyManagerPolicy");
  if (auto few = check_numa_nodes(settings, *policy); !few) return std::unexpected(few.error());

  auto cpus = CpuManager::make(settings, *policy);
  if (!cpus) return std::unexpected(cpus.error());
  auto memory = MemoryManager::make(settings);
  if (!memory) return std::unexpected(memory.error());
  auto devices = DeviceManager::make(settings.devices, NumaMask{settings.topology.all_numa_nodes()});
  if (!devices) return fail(devices.error(), "admission.devices");

  result.cpu_policy_ = settings.cpu_policy;
  result.memory_policy_ = settings.memory_policy;
  result.policy_ = *policy;
  result.scope_ = *scope;
  result.prefer_closest_ = options->prefer_closest;
  result.machine_ = settings.topology;
  result.cpus_ = *std::move(cpus);
  result.devices_ = *std::move(devices);
  result.providers_.push_back(result.devices_);
  if (result.cpus_) result.providers_.push_back(result.cpus_);
  if (*memory) result.providers_.push_back(*std::move(memory));
  return result;
}

MergeRules ResourceAllocator::rules() const {
  return {.all = NumaMask{machine_.all_numa_nodes()}, .distances = prefer_closest_ ? &machine_ : nullptr};
}

std::expected<PodAllocation, Refusal> ResourceAllocator::allocate(const core::Pod& pod, const Allocations& allocations,
                                                                  const PluginDevices& plugins) const {
  if (const auto held = allocations.find(pod.uid); held != allocations.end()) return keep(pod, held->second);
  AllocationsUnderWay rounds;
  for (const auto& provider : providers_)
    rounds.push_back(provider == devices_ ? devices_->begin(pod, allocations, plugins)
                                          : provider->begin(pod, allocations));
  if (auto walked = walk(pod, rounds); !walked) return std::unexpected(walked.error());
  PodAllocation result;
  for (const auto& round : rounds) round->hand_over(result);
  return result;
}

std::expected<void, Refusal> ResourceAllocator::walk(const core::Pod& pod, AllocationsUnderWay& rounds) const {
  const auto decide_by = [&](auto hints_of) -> std::expected<Hint, Refusal> {
    if (policy_ == TopologyPolicy::None) return Hint{};
    std::vector<ProviderHints> hints;
    for (const auto& round : rounds) hints.push_back(hints_of(*round));
    const auto decision = decide(policy_, hints, rules());
    if (decision.admitted) return decision.hint;
    return std::unexpected(
        Refusal{.reason = "TopologyAffinityError", .message = "Resources cannot be allocated with Topology locality"});
  };

  std::expected<Hint, Refusal> hint;
  if (scope_ == TopologyScope::Pod) hint = decide_by([](const Allocation& round) { return round.pod_hints(); });
  if (!hint) return std::unexpected(hint.error());
  for (const auto& turn : turns(pod)) {
    if (scope_ == TopologyScope::Container)
      hint = decide_by([&turn](const Allocation& round) { return round.hints(turn); });
    if (!hint) return std::unexpected(hint.error());
    for (const auto& round : rounds)
      if (auto given = round->allocate(turn, *hint); !given) return given;
  }
  return {};
}

/// The same as it has, unless it now asks for another number of CPUs or devices.
std::expected<PodAllocation, Refusal> ResourceAllocator::keep(const core::Pod& pod, const PodAllocation& held) const {
  const bool strict = policy_ == TopologyPolicy::Restricted || policy_ == TopologyPolicy::SingleNumaNode;
  for (const auto& turn : turns(pod)) {
    const auto found = held.find(turn.container.name);
    if (found == held.end()) continue;
    const auto& [name, has] = *found;
    if (cpus_ && strict && std::ssize(has.cpus) != CpuManager::exclusive_cpus(pod, turn.container))
      return std::unexpected(Refusal{.reason = "TopologyAffinityError",
                                     .message = "Resources cannot be allocated with Topology locality"});
    for (const auto& [resource, limit] : turn.container.resources.limits)
      if (const auto count = devices_held(has, resource); count != 0 && count != limit.value())
        return std::unexpected(Refusal::unexpected("pod \"" + pod.uid + "\" container \"" + name +
                                                   "\" changed request for resource \"" + resource + "\" from " +
                                                   std::to_string(count) + " to " + std::to_string(limit.value())));
  }
  return held;
}

CpuSet ResourceAllocator::shared_cpus(const Allocations& allocations) const {
  return cpus_ ? cpus_->shared_cpus(allocations) : CpuSet{};
}

Result<void> ResourceAllocator::check(const Allocations& allocations) const {
  for (const auto& provider : providers_)
    if (auto right = provider->check(allocations); !right) return right;
  return {};
}

ResourceAllocator::Basis ResourceAllocator::basis() const {
  Basis result{{"cpuManagerPolicy", cpu_policy_}, {"memoryManagerPolicy", memory_policy_}};
  for (const auto& provider : providers_) result.merge(provider->basis());
  return result;
}

bool release_all_but(const core::PodList& pods, Allocations& allocations, const Coming& coming) {
  std::set<std::string_view> present;
  for (const auto& pod : pods) present.insert(pod->uid);
  for (const auto& [uid, until] : coming) present.insert(uid);
  return std::erase_if(allocations, [&](const auto& entry) { return !present.contains(entry.first); }) > 0;
}

}  // namespace evictd::admission
