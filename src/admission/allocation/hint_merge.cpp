#include "admission/allocation/hint_merge.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

#include "admission/allocation/numa_mask.hpp"

namespace evictd::admission {
namespace {

using Masks = std::set<NumaMask>;

/// The masks that all resources have a preferred hint of. While no resource prefers one, any mask is open.
struct Agreement {
  Masks masks{};
  bool any = true;
};

Agreement agree(const Agreement& before, const std::vector<Hint>& hints) {
  Agreement here{.any = false};
  for (const auto& hint : hints) {
    if (!hint.preferred) continue;
    if (hint.affinity)
      here.masks.insert(*hint.affinity);
    else
      here.any = true;
  }
  Agreement both{.any = before.any && here.any};
  for (const auto mask : before.masks)
    if (here.any || here.masks.contains(mask)) both.masks.insert(mask);
  if (before.any) both.masks.insert(here.masks.begin(), here.masks.end());
  return both;
}

/// The parts of the machine's mask by numbers without gaps, so that they index an array.
class MaskIndex {
 public:
  explicit MaskIndex(NumaMask all) {
    for (const int node : all.nodes()) nodes_.push_back(node);
  }

  [[nodiscard]] std::size_t size() const { return std::size_t{1} << nodes_.size(); }
  [[nodiscard]] std::size_t of(NumaMask mask) const {
    std::size_t index = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (mask.contains(nodes_[i])) index |= std::size_t{1} << i;
    return index;
  }
  [[nodiscard]] NumaMask mask(std::size_t index) const {
    NumaMask result;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if ((index >> i & 1) != 0) result = result | NumaMask::of(nodes_[i]);
    return result;
  }

 private:
  std::vector<int> nodes_{};
};

/// How many ways there are to each mask, by its index.
using Ways = std::vector<std::uint64_t>;

/// Adds to each mask all that contain it, or takes that away again.
void sum_over_supersets(Ways& ways, bool back) {
  for (std::size_t bit = 1; bit < ways.size(); bit <<= 1)
    for (std::size_t mask = 0; mask < ways.size(); ++mask)
      if ((mask & bit) == 0) ways[mask] += back ? -ways[mask | bit] : ways[mask | bit];
}

/// What can be in common of a mask that was reachable before and a hint's: n·2^n steps, where looking at each pair
/// would be 4^n. (A pair's common part contains a mask exactly if both do, so that sums over supersets multiply.)
Ways narrowed(Ways before, const std::vector<Hint>& hints, NumaMask all, const MaskIndex& index) {
  Ways here(index.size());
  for (const auto& hint : hints) here[index.of(hint.affinity.value_or(all))] = 1;
  sum_over_supersets(before, false);
  sum_over_supersets(here, false);
  for (std::size_t i = 0; i < here.size(); ++i) here[i] *= before[i];
  sum_over_supersets(here, true);
  for (auto& ways : here) ways = ways == 0 ? 0 : 1;
  return here;
}

/// How many nodes the neediest resource takes at least.
int widest_of_narrowest(const std::vector<std::vector<Hint>>& hints) {
  int widest = 0;
  for (const auto& resource : hints) {
    int narrowest = 0;
    for (const auto& hint : resource)
      if (hint.affinity && (narrowest == 0 || hint.affinity->count() < narrowest)) narrowest = hint.affinity->count();
    widest = std::max(widest, narrowest);
  }
  return widest;
}

std::int64_t distance_within(NumaMask mask, const MachineTopology& machine) {
  std::int64_t sum = 0;
  for (const auto& node : machine.numa_nodes)
    for (const auto& [other, distance] : node.distances)
      if (mask.contains(node.id) && mask.contains(other)) sum += distance;
  return sum;
}

/// The smaller, the better: narrower, then closer where that counts, then lower.
auto fitness(NumaMask mask, const MergeRules& rules) {
  const auto distance = rules.distances == nullptr ? 0 : distance_within(mask, *rules.distances);
  return std::tuple{mask.count(), distance, mask};
}

/// The smaller, the better, among masks that no resource prefers: just as wide as needed, below it, above it.
int distance_from_need(NumaMask mask, int needed) {
  constexpr int beyond_all = 64;
  return mask.count() <= needed ? needed - mask.count() : beyond_all + mask.count();
}

}  // namespace

std::vector<std::vector<Hint>> hints_by_resource(const std::vector<ProviderHints>& providers) {
  std::vector<std::vector<Hint>> result;
  for (const auto& provider : providers) {
    if (provider.empty()) result.push_back({{.preferred = true}});
    for (const auto& [resource, hints] : provider) {
      if (!hints)
        result.push_back({{.preferred = true}});
      else if (hints->empty())
        result.push_back({{.preferred = false}});
      else
        result.push_back(*hints);
    }
  }
  return result;
}

Hint merge(const std::vector<std::vector<Hint>>& hints, const MergeRules& rules) {
  const MaskIndex index{rules.all};
  Agreement agreement;
  Ways ways(index.size());
  ways.back() = 1;
  for (const auto& resource : hints) {
    agreement = agree(agreement, resource);
    ways = narrowed(std::move(ways), resource, rules.all, index);
  }

  Masks preferred;
  if (agreement.any) preferred.insert(rules.all);
  for (const auto mask : agreement.masks)
    if (!(mask & rules.all).empty()) preferred.insert(mask & rules.all);
  const auto fit = [&](NumaMask mask) { return fitness(mask, rules); };
  if (!preferred.empty()) return {.affinity = *std::ranges::min_element(preferred, {}, fit), .preferred = true};

  Masks reachable;
  for (std::size_t i = 1; i < ways.size(); ++i)
    if (ways[i] != 0) reachable.insert(index.mask(i));
  if (reachable.empty()) return {.affinity = rules.all, .preferred = false};
  const int needed = widest_of_narrowest(hints);
  const auto least_bad = [&](NumaMask mask) { return std::tuple{distance_from_need(mask, needed), fit(mask)}; };
  return {.affinity = *std::ranges::min_element(reachable, {}, least_bad), .preferred = false};
}

}  // namespace evictd::admission
