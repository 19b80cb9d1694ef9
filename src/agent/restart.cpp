// What the agent leaves to the evictd that comes after it, and what it takes over from the one before.
#include <state.pb.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.hpp"
#include "agent/kept_state.hpp"
#include "core/duration.hpp"
#include "core/in_flight.hpp"
#include "core/signal.hpp"
#include "node/pod_cgroups.hpp"

namespace evictd::agent {
namespace {

/// Of those that have gone more are not kept: they are many only after a storm, and of most the cluster has been told.
constexpr std::size_t most_evicted_kept = 32;

core::Instant now() { return std::chrono::steady_clock::now(); }

}  // namespace

void Agent::add_to(state::v1::AgentState& kept) const {
  *kept.mutable_synchronizer() = keep(synchronizer_.state());
  for (const auto& [condition, since] : conditions_since_)
    (*kept.mutable_conditions_since_ns())[std::string(core::name(condition))] = keep(since);
}

std::vector<SavedEviction> Agent::evictions_to_save() const {
  std::vector<SavedEviction> saved;
  if (options_.dry_run) return saved;
  for (const auto& [uid, record] : evictions_) saved.push_back({.record = &record});

  std::vector<const Evicted*> latest;
  for (const auto& [uid, evicted] : evicted_pods_) latest.push_back(&evicted);
  const auto count = std::min(latest.size(), most_evicted_kept);
  std::ranges::partial_sort(latest, latest.begin() + static_cast<std::ptrdiff_t>(count), std::greater{},
                            [](const Evicted* evicted) { return evicted->until; });
  latest.resize(count);
  for (const auto* evicted : latest) saved.push_back({.record = &evicted->record, .until = evicted->until});
  return saved;
}

/// What was begun long ago is left alone, also where the pod was killed and somebody has started it again since: nobody
/// knows whether it still has to go, and the next pass will say.
void Agent::resume(const state::v1::AgentState& kept) {
  auto state = restored(kept.synchronizer());
  std::vector<node::PodCgroup> cgroups;
  for (const auto& message : kept.evictions()) {
    auto record = restored(message);
    if (!record || options_.dry_run) continue;
    const auto uid = record->pod->uid;
    if (now() > record->begun + record->grace_period + options_.cleanup_timeout) {
      parts_.recorder.failed(*record, {"evictd was away for too long: it is left alone"});
      std::erase_if(state.in_flight, [&](const core::InFlight::Entry& entry) { return entry.uid == uid; });
      continue;
    }
    cgroups.push_back({uid, record->runtime->cgroup});
    evictions_.insert_or_assign(uid, *std::move(record));
  }
  parts_.cgroups.sync(cgroups);
  for (const auto& message : kept.evicted())
    if (auto record = restored(message.eviction()); record && !options_.dry_run && now() < restored(message.until_ns()))
      evicted_pods_.insert_or_assign(record->pod->uid, Evicted{.record = *record,
                                                               .until = restored(message.until_ns()),
                                                               .ended = core::Instant{}});  // before every list

  // Their cleanup ended in the very moment in which evictd did.
  for (auto& entry : state.in_flight)
    if (entry.state == core::InFlight::State::releasing && !evictions_.contains(entry.uid))
      entry.state = core::InFlight::State::released;
  synchronizer_.restore(std::move(state));
  conditions_ = synchronizer_.conditions();
  for (const auto condition : core::all_node_conditions)
    if (const auto since = kept.conditions_since_ns().find(std::string(core::name(condition)));
        since != kept.conditions_since_ns().end())
      conditions_since_.insert_or_assign(condition, restored(since->second));
}

}  // namespace evictd::agent
