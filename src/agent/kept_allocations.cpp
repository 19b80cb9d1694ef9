#include "agent/kept_allocations.hpp"

#include <utility>

#include "admission/allocation/resource_allocator.hpp"
#include "admission/device_edits.hpp"

namespace evictd::agent {
namespace {

std::size_t size_of_edits(const admission::PodAllocation& allocation) {
  std::size_t sum = 0;
  for (const auto& [container, given] : allocation)
    if (given.edits) sum += admission::size_of(*given.edits);
  return sum;
}

}  // namespace

KeptAllocations::KeptAllocations(AdmittingNode& node, admission::Allocations kept)
    : node_{node}, all_{std::move(kept)} {}

admission::PodAllocation KeptAllocations::of(const std::string& uid) const {
  const auto found = all_.find(uid);
  return found == all_.end() ? admission::PodAllocation{} : found->second;
}

void KeptAllocations::give(const std::string& uid, const admission::PodAllocation& allocation) {
  const auto held = all_.find(uid);
  if (held == all_.end() ? allocation.empty() : held->second == allocation) return;
  if (allocation.empty())
    all_.erase(held);
  else
    all_.insert_or_assign(uid, allocation);
  node_.save(all_);
}

Result<void> KeptAllocations::keep_edits(const std::string& uid, const admission::PodAllocation& allocation) {
  if (allocation.empty()) return {};
  const auto held = all_.find(uid);
  if (held == all_.end()) return fail("the pod, which has gone meanwhile");
  if (held->second == allocation) return {};
  auto bytes = size_of_edits(allocation);
  for (const auto& [other, allocated] : all_)
    if (other != uid) bytes += size_of_edits(allocated);
  if (bytes > most_edits)
    return fail("what device plugins say of the node's containers: " + std::to_string(bytes) + " bytes, at most " +
                std::to_string(most_edits) + " are kept");
  give(uid, allocation);
  return {};
}

void KeptAllocations::pods_changed(const core::PodList& pods, const core::PodList& coming) {
  bool changed = false;
  for (const auto& pod : pods) {
    if (pod->uid == pod->key()) continue;
    if (auto unnamed = all_.extract(pod->key())) {
      unnamed.key() = pod->uid;
      all_.insert(std::move(unnamed));
      changed = true;
    }
  }
  auto there = pods;
  there.insert(there.end(), coming.begin(), coming.end());
  changed |= admission::release_all_but(there, all_);
  if (changed) node_.save(all_);
}

}  // namespace evictd::agent
