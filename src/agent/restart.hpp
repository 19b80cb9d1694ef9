#pragma once
#include "agent/agent.hpp"
#include "agent/evictions.hpp"
#include "agent/node_reports.hpp"
#include "node/pod_cgroups.hpp"

namespace evictd::state::v1 {
class AgentState;
}

namespace evictd::agent {

/// What evictd leaves to the one that comes after it, and takes over from the one before. On the reactor.
struct Restartable {
  Agent& agent;
  Evictions& evictions;
  NodeReports& reports;
  node::PodCgroups& cgroups;

  /// Goes on where an earlier evictd ended, before the agent runs: what it had begun is finished, not begun again.
  void restore(const state::v1::AgentState& kept) const;
  /// What restore() needs, but for the evictions (Evictions::to_save()).
  void add_to(state::v1::AgentState& kept) const;
};

}  // namespace evictd::agent
