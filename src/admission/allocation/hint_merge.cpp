#include "admission/allocation/hint_merge.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace evictd::admission {
namespace {

using Masks = std::set<NumaMask>;

/// The masks that all resources have a preferred hint of. While nobody named one, any is open.
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

/// What is left of each mask after one more resource; those that leave nothing are no choice.
Masks narrowed(const Masks& before, const std::vector<Hint>& hints, NumaMask all) {
  Masks here;
  for (const auto& hint : hints) here.insert(hint.affinity.value_or(all));
  Masks result;
  for (const auto a : before)
    for (const auto b : here)
      if (!(a & b).empty()) result.insert(a & b);
  return result;
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

/// The smaller, the better, among masks that nobody prefers: just as wide as needed, below it, above it.
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
  Agreement agreement;
  Masks reachable{rules.all};
  for (const auto& resource : hints) {
    agreement = agree(agreement, resource);
    reachable = narrowed(reachable, resource, rules.all);
  }

  Masks preferred;
  if (agreement.any) preferred.insert(rules.all);
  for (const auto mask : agreement.masks)
    if (!(mask & rules.all).empty()) preferred.insert(mask & rules.all);
  const auto fit = [&](NumaMask mask) { return fitness(mask, rules); };
  if (!preferred.empty()) return {.affinity = *std::ranges::min_element(preferred, {}, fit), .preferred = true};

  if (reachable.empty()) return {.affinity = rules.all, .preferred = false};
  const int needed = widest_of_narrowest(hints);
  const auto least_bad = [&](NumaMask mask) { return std::tuple{distance_from_need(mask, needed), fit(mask)}; };
  return {.affinity = *std::ranges::min_element(reachable, {}, least_bad), .preferred = false};
}

}  // namespace evictd::admission
