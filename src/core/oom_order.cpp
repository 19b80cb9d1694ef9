#include "core/oom_order.hpp"

#include <algorithm>

#include "core/eviction_order.hpp"
#include "core/oom_steering.hpp"
#include "core/qos.hpp"

namespace evictd::core {
namespace {

/// What a process of the pod has as score at most, if it is as the kubelet would have started it.
int most_score(const RankedPod& ranked, std::int64_t capacity) {
  const auto& pod = *ranked.pod;
  int adj = pod.containers.empty() ? most_adj : 0;
  const OomScoreAdj given(pod, capacity);
  for (const auto& container : pod.containers) adj = std::max(adj, given.of(container));
  return oom_share(ranked.usage, capacity) + 1 + adj;
}

}  // namespace

OomOrder oom_order(std::span<const PlacedPod> ranking, std::size_t most, std::int64_t capacity,
                   const std::function<bool(const Pod&)>& is_reachable) {
  OomOrder order;
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    const auto& ranked = ranking[i].ranked;
    const auto& pod = *ranked.pod;
    if (order.raised.size() < most && may_go(ranked) && !is_critical(pod) && qos_class(pod) != QosClass::Guaranteed &&
        is_reachable(pod))
      order.raised.push_back(i);
    else
      order.behind = std::max(order.behind, most_score(ranked, capacity));
  }
  return order;
}

int most_raised(const Pod& pod) { return qos_class(pod) == QosClass::BestEffort ? most_adj : most_burstable_adj; }

}  // namespace evictd::core
