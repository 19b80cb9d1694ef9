#include "agent/readiness.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/eviction_order.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::agent {
namespace {

bool acts_on_memory(const core::Synchronizer& policy) {
  return std::ranges::any_of(policy.thresholds(), core::is_memory, &core::Threshold::signal);
}

}  // namespace

void Readiness::pods_changed(const core::PodList& /*pods*/) {
  if (acts_on_memory(parts_.policy)) prepare_strike(parts_.usage.memory_as_listed(parts_.policy.pods()));
}

void Readiness::prepare_strike(const PodUsages& usage) {
  const auto now = parts_.clock.now();
  std::vector<pods::RuntimePodPtr> likeliest;
  for (const auto& placed : parts_.policy.ranking(core::Signal::MemoryAvailable, *parts_.policy.pods(), usage, now)) {
    if (likeliest.size() == evict::ReadyStrike::most_pods) break;
    if (!core::may_go(placed.ranked)) continue;
    if (auto pod = parts_.pods.find(placed.ranked.pod->uid)) likeliest.push_back(std::move(pod));
  }
  parts_.strike.prepare(likeliest, now);
}

}  // namespace evictd::agent
