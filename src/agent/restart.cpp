#include "agent/restart.hpp"

#include <state.pb.h>

#include <utility>
#include <vector>

#include "agent/kept_state.hpp"

namespace evictd::agent {

void Restartable::restore(const state::v1::AgentState& kept) const {
  auto state = restored(kept.synchronizer());
  evictions.restore(kept, state.in_flight);
  std::vector<node::PodCgroup> victims;
  for (const auto& [uid, record] : evictions.under_way()) victims.push_back({uid, record.runtime->cgroup});
  cgroups.sync(victims);
  agent.restore(std::move(state));
  reports.restore(kept, agent.synchronizer().conditions());
}

void Restartable::add_to(state::v1::AgentState& kept) const {
  *kept.mutable_synchronizer() = keep(agent.synchronizer().state());
  reports.add_to(kept);
}

}  // namespace evictd::agent
