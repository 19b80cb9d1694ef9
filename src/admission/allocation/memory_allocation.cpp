#include "admission/allocation/memory_allocation.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "admission/allocation/hint.hpp"
#include "admission/allocation/numa_mask.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "core/pod_resources.hpp"
#include "core/qos.hpp"

namespace evictd::admission {
namespace {

MemoryAmounts requested(const core::Container& container) {
  MemoryAmounts result;
  for (const auto& [resource, quantity] : container.resources.requests)
    if (is_memory_kind(resource)) result[resource] = quantity.value();
  return result;
}

/// Preferred first, then the narrowest. (kubelet: findBestHint)
Hint best(const std::vector<Hint>& hints) {
  return *std::ranges::min_element(hints, [](const Hint& a, const Hint& b) {
    return a.preferred == b.preferred ? is_narrower(*a.affinity, *b.affinity) : a.preferred;
  });
}

}  // namespace

MemoryAllocation::MemoryAllocation(MemoryState state, const core::Pod& pod)
    : state_(std::move(state)),
      pod_(pod),
      is_served_(core::qos_class(pod) == core::QosClass::Guaranteed && !core::has_pod_level_resources(pod)) {}

ProviderHints MemoryAllocation::pod_hints() const {
  // Only what the pod's own containers ask for, and then together with what its init containers need of it.
  MemoryAmounts kinds;
  for (const auto& container : pod_.containers) kinds.merge(requested(container));
  const auto bytes_of = [&](const std::string& kind) {
    return needed_at_once(
        pod_, [&](const core::Container& container) { return core::container_request(container, kind).value(); });
  };
  for (auto& [kind, bytes] : kinds) bytes = bytes_of(kind);
  return hints_for(kinds);
}

ProviderHints MemoryAllocation::hints(const Turn& turn) const { return hints_for(requested(turn.container)); }

/// Where no node has enough the kubelet's memory manager says nothing at all; allocating fails then.
ProviderHints MemoryAllocation::hints_for(const MemoryAmounts& request) const {
  if (!is_served_) return {};
  const auto hints = state_.hints(request, reusable_);
  ProviderHints result;
  if (hints.empty()) return result;
  for (const auto& [kind, bytes] : request) result[kind] = hints;
  return result;
}

std::expected<void, Refusal> MemoryAllocation::allocate(const Turn& turn, const Hint& hint) {
  if (!is_served_) return {};
  const auto request = requested(turn.container);
  if (request.empty()) return {};
  const auto mask = place(request, hint);
  if (!mask) return std::unexpected(Refusal::unexpected("[memorymanager] " + mask.error().message));

  auto& blocks = given_[turn.container.name];
  for (const auto& [kind, bytes] : request) {
    MemoryBlock block{.numa_nodes = mask->nodes(), .type = kind, .bytes = bytes};
    state_.give(block, reuse(turn, block));
    blocks.push_back(std::move(block));
  }
  if (turn.is_over_before_next()) over_.push_back(turn.container.name);
  return {};
}

/// The topology policy's place, or the best one; widened where it is too small.
///
/// The kubelet looks at a group's nodes one by one here, and may then put a container alone on a node that belongs to a
/// group. Here such a place is widened to the group.
Result<NumaMask> MemoryAllocation::place(const MemoryAmounts& request, const Hint& wanted) const {
  auto hint = wanted;
  if (!hint.affinity) {
    const auto all = state_.hints(request, reusable_);
    if (all.empty())
      return fail("failed to get the default NUMA affinity, no NUMA nodes with enough memory is available");
    hint = best(all);
    if (!hint.preferred && wanted.preferred) return fail("failed to find the default preferred hint");
  }
  const bool inside_group = hint.affinity->count() == 1 && state_.breaks_group(*hint.affinity);
  if (inside_group || !state_.satisfies(*hint.affinity, request, reusable_on(*hint.affinity))) {
    const auto wider = extended(*hint.affinity, request);
    if (!wider) return std::unexpected(wider.error());
    if (!wider->preferred && hint.preferred) return fail("failed to find the extended preferred hint");
    hint = *wider;
  }
  if (state_.breaks_group(*hint.affinity)) return fail("preferred hint violates NUMA node allocation");
  return *hint.affinity;
}

Result<Hint> MemoryAllocation::extended(NumaMask mask, const MemoryAmounts& request) const {
  auto hints = state_.hints(request, reusable_);
  std::erase_if(hints, [&](const Hint& hint) { return !hint.affinity->contains(mask); });
  if (hints.empty()) return fail("failed to find NUMA nodes to extend the current topology hint");
  return best(hints);
}

MemoryAmounts MemoryAllocation::reusable_on(NumaMask mask) const {
  const auto found = reusable_.find(mask);
  return found == reusable_.end() ? MemoryAmounts{} : found->second;
}

/// How much of the block earlier init containers already have; they keep the less, so that the sum over all containers
/// is what the pod holds.
std::int64_t MemoryAllocation::reuse(const Turn& turn, const MemoryBlock& block) {
  auto& left = reusable_[NumaMask{block.numa_nodes}][block.type];
  const auto reused = std::min(left, block.bytes);
  left = turn.is_over_before_next() ? std::max(left, block.bytes) : left - reused;

  auto to_take_over = reused;
  for (const auto& name : over_)
    for (auto& earlier : given_.at(name)) {
      if (earlier.type != block.type || earlier.numa_nodes != block.numa_nodes) continue;
      const auto part = std::min(earlier.bytes, to_take_over);
      earlier.bytes -= part;
      to_take_over -= part;
    }
  return reused;
}

void MemoryAllocation::hand_over(PodAllocation& allocation) const {
  for (const auto& [name, blocks] : given_) allocation[name].memory = blocks;
}

}  // namespace evictd::admission
