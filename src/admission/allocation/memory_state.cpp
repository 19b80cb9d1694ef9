#include "admission/allocation/memory_state.hpp"

#include <algorithm>
#include <utility>

#include "admission/allocation/numa_mask.hpp"
#include "admission/number_list.hpp"
#include "admission/pod_allocation.hpp"

namespace evictd::admission {
namespace {

std::int64_t amount(const MemoryAmounts& amounts, std::string_view kind) {
  const auto found = amounts.find(kind);
  return found == amounts.end() ? 0 : found->second;
}

}  // namespace

MemoryState::MemoryState(std::map<int, MemoryAmounts> allocatable) {
  for (auto& [id, amounts] : allocatable) {
    nodes_[id] = {.allocatable = amounts, .free = amounts, .group = NumaMask::of(id)};
    all_ = all_ | NumaMask::of(id);
  }
}

void MemoryState::give(const MemoryBlock& block, std::int64_t reused) {
  std::int64_t left = std::max<std::int64_t>(block.bytes - reused, 0);
  for (const int id : block.numa_nodes) {
    const auto found = nodes_.find(id);
    if (found == nodes_.end()) continue;
    auto& node = found->second;
    ++node.blocks;
    node.group = NumaMask{block.numa_nodes};
    auto& free = node.free[block.type];
    const auto taken = std::min(free, left);
    free -= taken;
    left -= taken;
  }
}

bool MemoryState::breaks_group(NumaMask mask) const {
  return std::ranges::any_of(nodes_, [&](const auto& entry) {
    const auto& [id, node] = entry;
    return mask.contains(id) && node.blocks > 0 && node.group != mask;
  });
}

bool MemoryState::satisfies(NumaMask mask, const MemoryAmounts& request, const MemoryAmounts& reusable) const {
  return std::ranges::all_of(request, [&](const auto& wanted) {
    std::int64_t sum = amount(reusable, wanted.first);
    for (const auto& [id, node] : nodes_)
      if (mask.contains(id)) sum += amount(node.free, wanted.first);
    return sum >= wanted.second;
  });
}

std::vector<Hint> MemoryState::hints(const MemoryAmounts& request, const Reusable& reusable) const {
  const auto could_hold = [&](NumaMask mask) {
    return std::ranges::all_of(request, [&](const auto& wanted) {
      std::int64_t sum = 0;
      for (const auto& [id, node] : nodes_)
        if (mask.contains(id)) sum += amount(node.allocatable, wanted.first);
      return sum >= wanted.second;
    });
  };
  int fewest = all_.count();
  std::vector<Hint> result;
  for_each_mask(all_, [&](NumaMask mask) {
    if (!could_hold(mask)) return;
    fewest = std::min(fewest, mask.count());
    const auto own = reusable.find(mask);
    if (!breaks_group(mask) && satisfies(mask, request, own == reusable.end() ? MemoryAmounts{} : own->second))
      result.push_back({.affinity = mask});
  });
  for (auto& hint : result) hint.preferred = hint.affinity->count() == fewest;
  return result;
}

Result<void> MemoryState::check(const MemoryBlock& block) const {
  const NumaMask mask{block.numa_nodes};
  const auto where = "NUMA nodes " + print_number_list(block.numa_nodes);
  if (mask.empty() || !all_.contains(mask) || mask.count() != static_cast<int>(block.numa_nodes.size()))
    return fail(where + " are not all there");
  if (breaks_group(mask)) return fail(where + " are in use otherwise");
  if (block.bytes < 0 || !satisfies(mask, {{block.type, block.bytes}}, {}))
    return fail(where + " do not have " + std::to_string(block.bytes) + " bytes of " + block.type);
  return {};
}

}  // namespace evictd::admission
