#include "simulate/scenario_topology.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admission/number_list.hpp"
#include "config/fields.hpp"
#include "core/quantity.hpp"

namespace evictd::simulate {
namespace {

using admission::MachineTopology;
using config::Field;
using config::into;
using config::keep;
using config::read_amount;
using config::read_fields;
using config::UnknownKeys;
using config::Value;

using Pages = std::map<std::string, core::Quantity, std::less<>>;
using Bytes = std::map<std::string, std::int64_t, std::less<>>;

Result<void> read_pages(const Value& value, Pages& target) { return config::read_map<read_amount>(value, target); }

/// Bytes by resource: {"memory": …, "hugepages-2Mi": …}.
Bytes memory_of(const core::Quantity& memory, const Pages& hugepages) {
  Bytes result{{"memory", memory.value()}};
  for (const auto& [size, amount] : hugepages) result.emplace("hugepages-" + size, amount.value());
  return result;
}

Result<void> read_count(const Value& value, int& target) {
  constexpr std::int64_t most = 4096;
  const auto number = value.integer(0, most);
  if (!number) return std::unexpected(number.error());
  target = static_cast<int>(*number);
  return {};
}

Result<void> read_distances(const Value& value, std::vector<int>& target) {
  return config::read_list<read_count>(value, target);
}

Result<void> read_cpus(const Value& value, std::vector<int>& target) {
  const auto text = value.text();
  if (!text) return std::unexpected(text.error());
  const auto numbers = admission::parse_number_list(*text);
  if (!numbers) return std::unexpected(value.error(numbers.error()));
  target.assign(numbers->begin(), numbers->end());
  return {};
}

/// One NUMA node as it is written.
struct NumaNode {
  std::optional<int> id{};
  std::optional<int> socket{};
  std::vector<int> cpus{};  // ascending
  int uncore_caches = 1;
  core::Quantity memory{};
  Pages hugepages{};
  std::vector<int> distances{};  // in the order of the list
};

Result<void> read_optional_count(const Value& value, std::optional<int>& target) {
  return read_count(value, target.emplace());
}

Result<void> read_numa_node(const Value& value, NumaNode& target) {
  using N = NumaNode;
  static constexpr Field<N> fields[]{{"id", into<&N::id, read_optional_count>},
                                     {"socket", into<&N::socket, read_optional_count>},
                                     {"cpus", into<&N::cpus, read_cpus>},
                                     {"uncoreCaches", into<&N::uncore_caches, read_count>},
                                     {"memory", into<&N::memory, read_amount>},
                                     {"hugepages", into<&N::hugepages, read_pages>},
                                     {"distances", into<&N::distances, read_distances>}};
  return read_fields(value, target, fields, UnknownKeys::reject);
}

/// A machine that is the same all over, as it is written.
struct Even {
  std::optional<int> sockets{};
  std::optional<int> numa_nodes_per_socket{};
  std::optional<int> cores_per_numa_node{};
  std::optional<int> uncore_caches_per_numa_node{};
  std::optional<core::Quantity> memory_per_numa_node{};
  Pages hugepages_per_numa_node{};
  int threads_per_core = 1;  // of either machine
  std::optional<Value> numa_nodes{};

  [[nodiscard]] bool says_anything() const {
    return sockets || numa_nodes_per_socket || cores_per_numa_node || uncore_caches_per_numa_node ||
           memory_per_numa_node || !hugepages_per_numa_node.empty();
  }
};

Result<void> read_even_amount(const Value& value, std::optional<core::Quantity>& target) {
  return read_amount(value, target.emplace());
}

Result<Even> read_even(const Value& value) {
  using E = Even;
  static constexpr Field<E> fields[]{
      {"sockets", into<&E::sockets, read_optional_count>},
      {"numaNodesPerSocket", into<&E::numa_nodes_per_socket, read_optional_count>},
      {"coresPerNumaNode", into<&E::cores_per_numa_node, read_optional_count>},
      {"threadsPerCore", into<&E::threads_per_core, read_count>},
      {"uncoreCachesPerNumaNode", into<&E::uncore_caches_per_numa_node, read_optional_count>},
      {"memoryPerNumaNode", into<&E::memory_per_numa_node, read_even_amount>},
      {"hugepagesPerNumaNode", into<&E::hugepages_per_numa_node, read_pages>},
      {"numaNodes", keep<&E::numa_nodes>}};
  Even even;
  if (auto result = read_fields(value, even, fields, UnknownKeys::reject); !result)
    return std::unexpected(result.error());
  return even;
}

/// The machine, or where it stands what is wrong with it.
Result<MachineTopology> placed(Result<MachineTopology> machine, const Value& at) {
  if (machine) return machine;
  return std::unexpected(at.error(machine.error()));
}

Result<MachineTopology> even_machine(const Value& at, const Even& even) {
  auto machine =
      admission::make_topology({.sockets = even.sockets.value_or(1),
                                .numa_nodes_per_socket = even.numa_nodes_per_socket.value_or(1),
                                .cores_per_numa_node = even.cores_per_numa_node.value_or(1),
                                .threads_per_core = even.threads_per_core,
                                .uncore_caches_per_numa_node = even.uncore_caches_per_numa_node.value_or(1),
                                .memory_per_numa_node = memory_of(even.memory_per_numa_node.value_or(core::Quantity{}),
                                                                  even.hugepages_per_numa_node)});
  return placed(std::move(machine), at);
}

Result<void> add_cpus(const Value& at, const NumaNode& node, int id, int threads, MachineTopology& topology) {
  const auto cpus = static_cast<int>(node.cpus.size());
  if (threads < 1 || cpus % threads != 0)
    return std::unexpected(at.error(fmt::format("{} CPUs are no whole cores of {} threads", cpus, threads)));
  const int cores = cpus / threads;
  if (node.uncore_caches < 1 || cores % node.uncore_caches != 0)
    return std::unexpected(at.error(fmt::format("{} cores do not divide among {} caches", cores, node.uncore_caches)));
  const int cores_per_cache = cores / node.uncore_caches;
  for (int i = 0; i < cpus; ++i) {
    const int core = i % cores;
    // Cores and caches are called by their lowest CPU.
    const auto cpu = [&](int index) { return node.cpus[static_cast<std::size_t>(index)]; };
    topology.cpus.push_back({.id = cpu(i),
                             .core = cpu(core),
                             .socket = node.socket.value_or(id),
                             .numa_node = id,
                             .uncore_cache = cpu(core / cores_per_cache * cores_per_cache)});
  }
  return {};
}

Result<MachineTopology> listed_machine(const Value& list, int threads) {
  const auto items = list.items();
  if (!items) return std::unexpected(items.error());
  std::vector<NumaNode> nodes;
  if (auto result = config::read_list<read_numa_node>(list, nodes); !result) return std::unexpected(result.error());

  MachineTopology topology;
  const auto id_of = [&](std::size_t index) { return nodes[index].id.value_or(static_cast<int>(index)); };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& node = nodes[i];
    const auto& at = (*items)[i];
    if (auto result = add_cpus(at, node, id_of(i), threads, topology); !result) return std::unexpected(result.error());
    if (!node.distances.empty() && node.distances.size() != nodes.size())
      return std::unexpected(
          at.error(fmt::format("{} distances for {} NUMA nodes", node.distances.size(), nodes.size())));
    admission::NumaNode own{.id = id_of(i), .memory = memory_of(node.memory, node.hugepages)};
    for (std::size_t other = 0; other < node.distances.size(); ++other)
      own.distances[id_of(other)] = node.distances[other];
    topology.numa_nodes.push_back(std::move(own));
  }
  return placed(admission::checked(std::move(topology)), list);
}

}  // namespace

Result<MachineTopology> read_topology(const Value& value) {
  const auto even = read_even(value);
  if (!even) return std::unexpected(even.error());
  if (even->numa_nodes && even->says_anything())
    return std::unexpected(value.error("numaNodes says all; only threadsPerCore stands beside it"));
  return even->numa_nodes ? listed_machine(*even->numa_nodes, even->threads_per_core) : even_machine(value, *even);
}

}  // namespace evictd::simulate
