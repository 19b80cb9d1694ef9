#pragma once
#include <string>

#include "api/handlers.hpp"
#include "core/signal.hpp"
#include "core/synchronizer.hpp"

namespace evictd::agent {

class Agent;

/// Answers RankPods: the order in which pods would go, as the agent itself would have it. Memory is read exactly of the
/// first hundred pods, of the others a bound, so that a thousand pods do not hold up the reactor for long.
[[nodiscard]] api::Answer<v1::RankPodsResponse> rank_pods(Agent& agent, const v1::RankPodsRequest& request);

/// Why a pod stands where it does, in a few words: "uses 312Mi more than it asked for".
[[nodiscard]] std::string why(core::Signal signal, const core::PlacedPod& pod);

}  // namespace evictd::agent
