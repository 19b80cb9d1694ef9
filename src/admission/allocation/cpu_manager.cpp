#include "admission/allocation/cpu_manager.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "admission/allocation/allocation_settings.hpp"
#include "admission/allocation/cpu_accumulator.hpp"
#include "admission/allocation/cpu_assignment.hpp"
#include "admission/allocation/hint.hpp"
#include "admission/allocation/numa_mask.hpp"
#include "admission/number_list.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "core/pod_resources.hpp"
#include "core/qos.hpp"

namespace evictd::admission {
namespace {

/// Dividing CPUs among NUMA nodes looks at each set of them, and at each part of that for what is left over: 3^n steps.
constexpr int most_nodes_to_divide_among = 8;

CpuSet together(CpuSet a, const CpuSet& b) {
  a.insert(b.begin(), b.end());
  return a;
}

CpuSet without(const CpuSet& a, const CpuSet& b) {
  CpuSet result;
  std::ranges::set_difference(a, b, std::inserter(result, result.end()));
  return result;
}

CpuSet cpus_of(const Allocations& allocations) {
  CpuSet result;
  for (const auto& [uid, pod] : allocations)
    for (const auto& [name, container] : pod) result.insert(container.cpus.begin(), container.cpus.end());
  return result;
}

/// Which CPUs the configuration keeps back, rounded up to whole ones.
Result<int> reserved_count(const AllocationSettings& settings) {
  if (!settings.reserved_cpus.empty()) return static_cast<int>(settings.reserved_cpus.size());
  const auto cpu = settings.reserved.find("cpu");
  if (cpu == settings.reserved.end())
    return fail(
        "unable to determine reserved CPU resources for static policy: set "
        "reservedSystemCPUs, or cpu in kubeReserved or systemReserved");
  if (cpu->second.is_zero() || cpu->second.is_negative())
    return fail("the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero");
  return static_cast<int>(std::min<std::int64_t>(cpu->second.value(), 1'000'000));
}

class CpuAllocation final : public Allocation {
 public:
  CpuAllocation(const CpuManager& manager, const core::Pod& pod, const Allocations& others)
      : manager_(manager), pod_(pod), shared_(without(manager.shared_cpus(others), manager.reserved())) {}

  [[nodiscard]] ProviderHints pod_hints() const override {
    return hints_for(static_cast<int>(needed_at_once(
        pod_, [this](const core::Container& container) { return CpuManager::exclusive_cpus(pod_, container); })));
  }

  [[nodiscard]] ProviderHints hints(const Turn& turn) const override {
    return hints_for(CpuManager::exclusive_cpus(pod_, turn.container));
  }

  [[nodiscard]] std::expected<void, Refusal> allocate(const Turn& turn, const Hint& hint) override {
    const int count = CpuManager::exclusive_cpus(pod_, turn.container);
    if (count == 0) return {};
    if (manager_.options().full_pcpus_only)
      if (auto whole = check_whole_cores(count); !whole) return whole;
    const auto cpus = manager_.pick(together(shared_, reusable_), count, hint.affinity);
    if (!cpus) return std::unexpected(Refusal::unexpected(cpus.error().message));
    shared_ = without(shared_, *cpus);
    reusable_ = turn.is_over_before_next() ? together(std::move(reusable_), *cpus) : without(reusable_, *cpus);
    given_[turn.container.name] = *cpus;
    return {};
  }

  void hand_over(PodAllocation& allocation) const override {
    for (const auto& [name, cpus] : given_) allocation[name].cpus = cpus;
  }

 private:
  [[nodiscard]] ProviderHints hints_for(int count) const {
    if (count == 0) return {};
    return {{"cpu", manager_.hints(shared_, reusable_, count)}};
  }

  /// Threads next to a reserved one cannot be part of a whole core. What init containers leave does not count, as with
  /// the kubelet.
  [[nodiscard]] std::expected<void, Refusal> check_whole_cores(int count) const {
    const int threads = manager_.threads_per_core();
    const auto refuse = [](const std::string& what) {
      return std::unexpected(Refusal{.reason = "SMTAlignmentError", .message = "SMT Alignment Error: " + what});
    };
    if (count % threads != 0)
      return refuse("requested " + std::to_string(count) +
                    " cpus not multiple cpus per core = " + std::to_string(threads));
    const auto available = without(shared_, manager_.reserved_cores()).size();
    if (static_cast<std::size_t>(count) > available)
      return refuse("not enough free physical CPUs: available physical CPUs = " + std::to_string(available) +
                    ", requested CPUs = " + std::to_string(count) + ", CPUs per core = " + std::to_string(threads));
    return {};
  }

  const CpuManager& manager_;
  const core::Pod& pod_;
  CpuSet shared_;      // free for anybody
  CpuSet reusable_{};  // of init containers that are over, for this pod only
  std::map<std::string, CpuSet, std::less<>> given_{};
};

}  // namespace

Result<std::unique_ptr<CpuManager>> CpuManager::make(const AllocationSettings& settings,
                                                     TopologyPolicy topology_policy) {
  if (settings.cpu_policy == "none") {
    if (!settings.cpu_options.empty())
      return fail("cpuManagerPolicyOptions: None policy: received unsupported options (" +
                  settings.cpu_options.begin()->first + ")");
    return nullptr;
  }
  if (settings.cpu_policy != "static") return fail("cpuManagerPolicy: unknown policy: \"" + settings.cpu_policy + "\"");
  const auto options = parse_cpu_options(settings.cpu_options);
  if (!options) return fail(options.error(), "cpuManagerPolicyOptions");
  const auto count = reserved_count(settings);
  if (!count) return fail(count.error(), "cpuManagerPolicy");
  if (settings.topology.cpus.empty()) return fail("cpuManagerPolicy: the machine's topology is not known");

  std::unique_ptr<CpuManager> manager{new CpuManager{settings.topology, *options}};
  if (auto fits = manager->check_options(topology_policy); !fits) return fail(fits.error(), "cpuManagerPolicyOptions");
  if (auto reserved = manager->reserve(settings.reserved_cpus, *count); !reserved)
    return std::unexpected(reserved.error());
  return manager;
}

CpuManager::CpuManager(MachineTopology machine, CpuOptions options) : machine_(std::move(machine)), options_(options) {
  std::set<int> cores;
  std::set<int> sockets;
  NumaNodes nodes;
  for (const auto& cpu : machine_.cpus) {
    cores.insert(cpu.core);
    sockets.insert(cpu.socket);
    nodes.insert(cpu.numa_node);
  }
  threads_per_core_ = static_cast<int>(machine_.cpus.size() / cores.size());
  sockets_ = static_cast<int>(sockets.size());
  numa_nodes_ = NumaMask{nodes};
}

/// Whether they can be had on this machine.
Result<void> CpuManager::check_options(TopologyPolicy topology_policy) const {
  if (options_.distribute_cpus_across_numa && numa_nodes_.count() > most_nodes_to_divide_among)
    return fail("distribute-cpus-across-numa: evictd divides CPUs among at most " +
                std::to_string(most_nodes_to_divide_among) + " NUMA nodes, and this machine has " +
                std::to_string(numa_nodes_.count()));
  if (!options_.align_by_socket) return {};
  if (topology_policy == TopologyPolicy::SingleNumaNode)
    return fail("the option align-by-socket is incompatible with the topology manager's policy single-numa-node");
  if (sockets_ > numa_nodes_.count())
    return fail("the option align-by-socket is not compatible with hardware that has more sockets than NUMA nodes");
  return {};
}

/// Those that are named, or else so many from the lowest core on.
Result<void> CpuManager::reserve(const CpuSet& named, int count) {
  const auto all = machine_.all_cpus();
  if (!std::ranges::includes(all, named))
    return fail("reservedSystemCPUs: " + print_number_list(without(named, all)) + " of " + print_number_list(named) +
                " is not online (" + print_number_list(all) + ")");
  const auto reserved = named.empty() ? take(all, count) : named;
  if (!reserved || static_cast<int>(reserved->size()) != count)
    return fail("cpuManagerPolicy: unable to reserve the required amount of CPUs (" + std::to_string(count) + " of " +
                std::to_string(all.size()) + ")");
  reserved_ = *reserved;
  std::set<int> cores;
  for (const auto& cpu : machine_.cpus)
    if (reserved_.contains(cpu.id)) cores.insert(cpu.core);
  for (const auto& cpu : machine_.cpus)
    if (cores.contains(cpu.core)) reserved_cores_.insert(cpu.id);
  return {};
}

int CpuManager::exclusive_cpus(const core::Pod& pod, const core::Container& container) {
  if (core::has_pod_level_resources(pod)) return 0;
  if (core::qos_class(pod) != core::QosClass::Guaranteed) return 0;
  const auto request = core::container_request(container, "cpu");
  constexpr std::int64_t more_than_any_machine = 1'000'000;
  const auto count = std::min(request.value(), more_than_any_machine);
  return request.milli_value() % 1000 == 0 ? static_cast<int>(count) : 0;
}

CpuSet CpuManager::shared_cpus(const Allocations& allocations) const {
  auto shared = without(machine_.all_cpus(), cpus_of(allocations));
  return options_.strict_cpu_reservation ? without(shared, reserved_) : shared;
}

std::unique_ptr<Allocation> CpuManager::begin(const core::Pod& pod, const Allocations& others) const {
  return std::make_unique<CpuAllocation>(*this, pod, others);
}

std::vector<Hint> CpuManager::hints(const CpuSet& free, const CpuSet& reusable, int count) const {
  struct OfNode {
    int all = 0;
    int free = 0;
    int reusable = 0;
  };
  std::map<int, OfNode> by_node;
  NumaNodes with_reusable;
  for (const auto& cpu : machine_.cpus) {
    auto& node = by_node[cpu.numa_node];
    ++node.all;
    if (free.contains(cpu.id)) ++node.free;
    if (!reusable.contains(cpu.id)) continue;
    ++node.reusable;
    with_reusable.insert(cpu.numa_node);
  }

  const NumaMask reusable_nodes{with_reusable};
  int fewest = numa_nodes_.count();
  std::vector<Hint> result;
  for_each_mask(numa_nodes_, [&](NumaMask mask) {
    OfNode sum;
    for (const auto& [id, node] : by_node) {
      if (!mask.contains(id)) continue;
      sum.all += node.all;
      sum.free += node.free;
      sum.reusable += node.reusable;
    }
    if (sum.all >= count) fewest = std::min(fewest, mask.count());
    if (mask.contains(reusable_nodes) && sum.free + sum.reusable >= count) result.push_back({.affinity = mask});
  });
  for (auto& hint : result)
    hint.preferred =
        hint.affinity->count() == fewest || (options_.align_by_socket && keeps_sockets(*hint.affinity, fewest));
  return result;
}

/// Whether the mask spans no more sockets than so many NUMA nodes must.
bool CpuManager::keeps_sockets(NumaMask mask, int fewest_nodes) const {
  const int nodes_per_socket = numa_nodes_.count() / sockets_;
  if (nodes_per_socket == 0) return false;
  std::set<int> spanned;
  for (const auto& cpu : machine_.cpus)
    if (mask.contains(cpu.numa_node)) spanned.insert(cpu.socket);
  return static_cast<int>(spanned.size()) == (fewest_nodes + nodes_per_socket - 1) / nodes_per_socket;
}

bool CpuManager::is_near(const LogicalCpu& cpu, NumaMask affinity) const {
  if (!options_.align_by_socket) return affinity.contains(cpu.numa_node);
  return std::ranges::any_of(machine_.cpus, [&](const LogicalCpu& other) {
    return other.socket == cpu.socket && affinity.contains(other.numa_node);
  });
}

Result<CpuSet> CpuManager::pick(const CpuSet& free, int count, const std::optional<NumaMask>& affinity) const {
  CpuSet near;
  if (affinity)
    for (const auto& cpu : machine_.cpus)
      if (free.contains(cpu.id) && is_near(cpu, *affinity)) near.insert(cpu.id);
  const auto first = take(near, std::min(count, static_cast<int>(near.size())));
  if (!first) return first;
  const auto rest = take(without(free, *first), count - static_cast<int>(first->size()));
  if (!rest) return rest;
  return together(*first, *rest);
}

Result<CpuSet> CpuManager::take(const CpuSet& free, int count) const {
  const CpuPreferences preferences{.spread_across_cores = options_.distribute_cpus_across_cores,
                                   .align_by_uncore_cache = options_.prefer_align_cpus_by_uncorecache};
  if (!options_.distribute_cpus_across_numa) return take_packed(machine_, free, count, preferences);
  return take_distributed(machine_, free, count, options_.full_pcpus_only ? threads_per_core_ : 1, preferences);
}

Result<void> CpuManager::check(const Allocations& allocations) const {
  const auto all = machine_.all_cpus();
  std::map<int, std::string_view> owner;
  for (const auto& [uid, pod] : allocations) {
    for (const auto& [name, container] : pod)
      for (const int cpu : container.cpus) {
        const auto which = "CPU " + std::to_string(cpu) + " of pod " + uid;
        if (!all.contains(cpu)) return fail(which + " is not there");
        if (reserved_.contains(cpu)) return fail(which + " is reserved");
        if (const auto [other, is_new] = owner.try_emplace(cpu, uid); !is_new && other->second != uid)
          return fail(which + " belongs to pod " + std::string(other->second));
      }
  }
  return {};
}

std::map<std::string, std::string, std::less<>> CpuManager::basis() const {
  return {{"onlineCpus", print_number_list(machine_.all_cpus())}, {"reservedCpus", print_number_list(reserved_)}};
}

}  // namespace evictd::admission
