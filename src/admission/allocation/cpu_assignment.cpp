#include "admission/allocation/cpu_assignment.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "admission/allocation/machine_topology.hpp"

namespace evictd::admission {
namespace {

/// In the kubelet's words.
std::unexpected<Error> too_few() { return fail("not enough cpus available to satisfy request"); }

/// Calls `use` with each choice of `size` of the items, in their order, until it answers false.
template <class Use>
bool for_each_choice(const std::vector<int>& items, std::size_t size, Use use, std::vector<int> chosen = {},
                     std::size_t from = 0) {
  if (chosen.size() == size) return use(chosen);
  for (std::size_t i = from; i + (size - chosen.size()) <= items.size(); ++i) {
    auto more = chosen;
    more.push_back(items[i]);
    if (!for_each_choice(items, size, use, std::move(more), i + 1)) return false;
  }
  return true;
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

/// The standard deviation, both it and the mean to a thousandth, as the kubelet compares it.
double imbalance(const std::map<int, int>& free_by_node) {
  double sum = 0;
  for (const auto& [node, free] : free_by_node) sum += free;
  const double mean = rounded(sum / static_cast<double>(free_by_node.size()));
  double squares = 0;
  for (const auto& [node, free] : free_by_node) squares += (free - mean) * (free - mean);
  return rounded(std::sqrt(squares / static_cast<double>(free_by_node.size())));
}

/// From which nodes equal parts are taken, and from which the odd groups.
struct Distribution {
  double balance = std::numeric_limits<double>::max();
  std::vector<int> nodes{};
  std::vector<int> odd_nodes{};
  int part = 0;  ///< of each node
};

/// Works out how a request can be divided among NUMA nodes.
class Divider {
 public:
  Divider(const CpuAccumulator& accumulator, int count, int group_size)
      : nodes_(accumulator.numa_nodes()), count_(count), group_size_(group_size) {
    for (const int node : nodes_) free_[node] = static_cast<int>(accumulator.free_in(node).size());
  }

  /// The most balanced choice of so many nodes; absent where none can be.
  [[nodiscard]] std::optional<Distribution> best_of(std::size_t size) const {
    Distribution best;
    for_each_choice(nodes_, size, [&](const std::vector<int>& nodes) {
      auto candidate = divide_among(nodes);
      if (candidate && candidate->balance < best.balance) best = *std::move(candidate);
      return best.balance != 0;
    });
    if (best.nodes.empty()) return std::nullopt;
    return best;
  }

  [[nodiscard]] std::size_t nodes() const { return nodes_.size(); }

 private:
  [[nodiscard]] std::optional<Distribution> divide_among(const std::vector<int>& nodes) const {
    int groups = 0;
    for (const int node : nodes) groups += free_.at(node) / group_size_;
    if (groups * group_size_ < count_) return std::nullopt;
    const int part = count_ / static_cast<int>(nodes.size()) / group_size_ * group_size_;
    auto left = free_;
    for (const int node : nodes) {
      left[node] -= part;
      if (left[node] < 0) return std::nullopt;
    }
    Distribution result{.nodes = nodes, .part = part};
    const int odd = count_ - part * static_cast<int>(nodes.size());
    if (odd == 0)
      result.balance = imbalance(left);
    else
      place_odd(odd, left, result);
    if (result.balance == std::numeric_limits<double>::max()) return std::nullopt;
    return result;
  }

  /// Over as many nodes as can be; of these choices the one that leaves the machine most balanced.
  void place_odd(int odd, const std::map<int, int>& left, Distribution& result) const {
    std::vector<int> able;
    for (const int node : result.nodes)
      if (left.at(node) >= group_size_) able.push_back(node);
    for (std::size_t size = able.size(); size >= 1 && result.balance != 0; --size)
      for_each_choice(able, size, [&](const std::vector<int>& nodes) {
        int groups = 0;
        for (const int node : nodes) groups += left.at(node) / group_size_;
        if (groups * group_size_ < odd) return true;
        auto after = left;
        for (int rest = odd; rest > 0;)
          for (const int node : nodes) {
            if (rest == 0 || after[node] < group_size_) continue;
            after[node] -= group_size_;
            rest -= group_size_;
          }
        if (const auto balance = imbalance(after); balance < result.balance) {
          result.balance = balance;
          result.odd_nodes = nodes;
        }
        return result.balance != 0;
      });
  }

  std::vector<int> nodes_;
  std::map<int, int> free_{};
  int count_;
  int group_size_;
};

/// The fewest NUMA nodes that could be enough on an empty machine.
int least_nodes(const MachineTopology& machine, int count, int group_size) {
  std::set<int> nodes;
  for (const auto& cpu : machine.cpus) nodes.insert(cpu.numa_node);
  const int groups = (static_cast<int>(machine.cpus.size()) - 1) / group_size + 1;
  const int groups_per_node = (groups - 1) / static_cast<int>(nodes.size()) + 1;
  const int groups_needed = (count - 1) / group_size + 1;
  return (groups_needed - 1) / groups_per_node + 1;
}

Result<CpuSet> take_parts(const MachineTopology& machine, CpuAccumulator accumulator, const Distribution& distribution,
                          int group_size, const CpuPreferences& preferences) {
  const auto take_from = [&](int node, int count) -> Result<void> {
    const auto cpus = take_packed(machine, accumulator.free_in(node), count, preferences);
    if (!cpus) return std::unexpected(cpus.error());
    accumulator.take(*cpus);
    return {};
  };
  for (const int node : distribution.nodes)
    if (auto taken = take_from(node, distribution.part); !taken) return std::unexpected(taken.error());
  while (!accumulator.is_satisfied())
    for (const int node : distribution.odd_nodes) {
      if (accumulator.is_satisfied()) break;
      if (static_cast<int>(accumulator.free_in(node).size()) < group_size) continue;
      if (auto taken = take_from(node, group_size); !taken) return std::unexpected(taken.error());
    }
  return accumulator.taken();
}

}  // namespace

Result<CpuSet> take_packed(const MachineTopology& machine, const CpuSet& free, int count,
                           const CpuPreferences& preferences) {
  CpuAccumulator accumulator{machine, free, count};
  if (accumulator.is_satisfied()) return CpuSet{};
  if (count > static_cast<int>(free.size())) return too_few();
  accumulator.take_whole_numa_nodes_and_sockets();
  if (!accumulator.is_satisfied() && preferences.align_by_uncore_cache) accumulator.take_uncore_caches();
  if (!accumulator.is_satisfied() && !preferences.spread_across_cores) accumulator.take_whole_cores();
  if (!accumulator.is_satisfied()) accumulator.take_threads(preferences.spread_across_cores);
  if (!accumulator.is_satisfied()) return fail("failed to allocate cpus");
  return accumulator.taken();
}

Result<CpuSet> take_distributed(const MachineTopology& machine, const CpuSet& free, int count, int group_size,
                                const CpuPreferences& preferences) {
  if (count % group_size != 0) return take_packed(machine, free, count, preferences);
  const CpuAccumulator accumulator{machine, free, count};
  if (accumulator.is_satisfied()) return CpuSet{};
  if (count > static_cast<int>(free.size())) return too_few();

  const Divider divider{accumulator, count, group_size};
  const auto most = std::min(static_cast<std::size_t>(count / group_size), divider.nodes());
  for (auto size = static_cast<std::size_t>(least_nodes(machine, count, group_size)); size <= most; ++size)
    if (const auto distribution = divider.best_of(size))
      return take_parts(machine, accumulator, *distribution, group_size, preferences);
  return take_packed(machine, free, count, preferences);
}

}  // namespace evictd::admission
