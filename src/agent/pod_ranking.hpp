#pragma once
#include <string>

#include "agent/pod_tracker.hpp"
#include "agent/pod_usage.hpp"
#include "api/handlers.hpp"
#include "core/signal.hpp"
#include "core/synchronizer.hpp"

namespace evictd::agent {

/// What a ranking is made of. On the reactor.
struct Rankable {
  const core::Synchronizer& policy;
  const PodTracker& pods;
  PodUsageReader& usage;
};

/// Answers RankPods: who would go for the signal if it were short now (core::Synchronizer::ranking), by the memory and
/// the processes that pods have at this moment, by the disk usage as it was measured last. Memory is read exactly of
/// the first hundred pods, of the others a bound: 5 ms at 1000 pods. Nothing comes of it.
[[nodiscard]] api::Answer<v1::RankPodsResponse> rank_pods(const Rankable& node, const v1::RankPodsRequest& request);

/// Why a pod stands where it does, in a few words: "uses 312Mi more than it asked for".
[[nodiscard]] std::string why(core::Signal signal, const core::PlacedPod& pod);

}  // namespace evictd::agent
