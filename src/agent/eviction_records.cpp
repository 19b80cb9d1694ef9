#include "agent/eviction_records.hpp"

#include <state.pb.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

#include "state/restored_state.hpp"

using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

/// Of those that have gone more are not saved: they are many only after a storm, and of most the cluster has been told.
constexpr std::size_t most_evicted_saved = 32;

/// StopContainer and StopPodSandbox of one eviction, each beyond the time that it gives.
constexpr core::Duration runtime_time = 5s;

}  // namespace

void EvictionRecords::begin(evict::EvictionRecord record) {
  const auto uid = record.pod->uid;
  under_way_.insert_or_assign(uid, std::move(record));
}

evict::EvictionRecord* EvictionRecords::find(std::string_view uid, std::uint64_t id) {
  const auto found = under_way_.find(uid);
  return found != under_way_.end() && found->second.id == id ? &found->second : nullptr;
}

void EvictionRecords::forget(std::string_view uid) {
  if (const auto found = under_way_.find(uid); found != under_way_.end()) under_way_.erase(found);
}

evict::EvictionRecord EvictionRecords::end(std::string_view uid, core::Instant now) {
  constexpr auto remembered = 5min;
  auto record = std::move(under_way_.extract(under_way_.find(uid)).mapped());
  evicted_.insert_or_assign(record.pod->uid,
                            Evicted{.record = record, .until = now + remembered, .ended = record.settled});
  return record;
}

void EvictionRecords::settled(const evict::EvictionRecord& record, core::Instant now) {
  if (auto* under_way = find(record.pod->uid, record.id)) under_way->settled = now;  // its cgroup is still there
  const auto found = evicted_.find(record.pod->uid);
  if (found != evicted_.end() && found->second.record.id == record.id) found->second.ended = now;
}

void EvictionRecords::returned(std::string_view uid) {
  if (const auto found = evicted_.find(uid); found != evicted_.end()) found->second.returned = true;
}

bool EvictionRecords::has_ended(std::string_view uid) const {
  if (const auto going = under_way_.find(uid); going != under_way_.end()) return going->second.gone;
  const auto found = evicted_.find(uid);
  return found != evicted_.end() && found->second.record.killed && !found->second.returned;
}

/// Of one that was seen gone nothing was left: whatever is in its cgroup now was started again.
bool EvictionRecords::knows(const pods::NamedUid& named) const {
  const auto is_of = [&](const auto& entry) { return named.is_of(entry.first); };
  const auto may_be_left = [&](const auto& entry) { return is_of(entry) && !entry.second.record.gone; };
  return std::ranges::any_of(under_way_, is_of) || std::ranges::any_of(evicted_, may_be_left);
}

bool EvictionRecords::is_latest(const evict::EvictionRecord& record) const {
  if (const auto going = under_way_.find(record.pod->uid); going != under_way_.end())
    return going->second.id == record.id;
  const auto over = evicted_.find(record.pod->uid);
  return over == evicted_.end() || over->second.record.id == record.id;
}

std::vector<std::string> EvictionRecords::ended_before(core::Instant time, core::Instant now) {
  std::erase_if(evicted_, [now](const auto& entry) { return entry.second.until <= now; });
  std::vector<std::string> uids;
  for (const auto& [uid, evicted] : evicted_)
    if (!evicted.returned && evicted.ended && *evicted.ended < time) uids.push_back(uid);
  return uids;
}

/// What was begun long ago is left alone, also where the pod was killed and somebody has started it again since: nobody
/// knows whether it still has to go, and the next pass will say. One that was killed is awaited for longer: first until
/// it has no processes, then until it is gone, with what the runtime takes between. One that is gone harms nobody:
/// nothing but its cgroup and its volumes is awaited.
std::vector<evict::EvictionRecord> EvictionRecords::restore(const state::v1::AgentState& kept,
                                                            std::vector<core::InFlight::Entry>& in_flight,
                                                            core::Duration cleanup_timeout, core::Instant now) {
  std::vector<evict::EvictionRecord> too_old;
  for (const auto& message : kept.evictions()) {
    auto record = state::restored(message);
    if (!record) continue;
    const auto given = record->given_time == evict::GivenTime::now ? evict::longest_given_time : core::Duration{};
    const auto patience = record->killed ? 2 * cleanup_timeout + runtime_time : cleanup_timeout;
    if (!record->gone && now > record->begun + record->grace_period + given + patience) {
      std::erase_if(in_flight, [&](const core::InFlight::Entry& entry) { return entry.uid == record->pod->uid; });
      too_old.push_back(*std::move(record));
    } else {
      begin(*std::move(record));
    }
  }
  for (const auto& message : kept.evicted())
    if (auto record = state::restored(message.eviction()); record && now < state::restored(message.until_ns()))
      evicted_.insert_or_assign(record->pod->uid, Evicted{.record = *record,
                                                          .until = state::restored(message.until_ns()),
                                                          .ended = core::Instant{}});  // before every list
  const auto is_open = [this](const core::InFlight::Entry& entry) {
    return entry.state == core::InFlight::State::releasing && !under_way_.contains(entry.uid);
  };
  // They were chosen in one pass with another pod, whose eviction was saved before theirs was begun.
  std::erase_if(in_flight, [&](const auto& entry) { return is_open(entry) && !evicted_.contains(entry.uid); });
  // Their cleanup ended in the very moment in which evictd did.
  for (auto& entry : in_flight)
    if (is_open(entry)) entry.state = core::InFlight::State::released;
  return too_old;
}

std::vector<state::SavedEviction> EvictionRecords::to_save() const {
  std::vector<state::SavedEviction> saved;
  for (const auto& [uid, record] : under_way_) saved.push_back({.record = &record});

  std::vector<const Evicted*> latest;
  for (const auto& [uid, evicted] : evicted_)
    if (!evicted.returned) latest.push_back(&evicted);
  const auto count = std::min(latest.size(), most_evicted_saved);
  std::ranges::partial_sort(latest, latest.begin() + static_cast<std::ptrdiff_t>(count), std::greater{},
                            [](const Evicted* evicted) { return evicted->until; });
  latest.resize(count);
  for (const auto* evicted : latest) saved.push_back({.record = &evicted->record, .until = evicted->until});
  return saved;
}

bool runs_again(const evict::EvictionRecord& record, const pods::RuntimePod& listed) {
  if (!record.killed || record.runtime == nullptr) return pods::runs(listed);
  const auto was_killed = [&](const pods::RuntimeContainer& container) {
    const auto& killed = record.runtime->containers;
    return std::ranges::find(killed, container.id, &pods::RuntimeContainer::id) != killed.end();
  };
  return std::ranges::any_of(listed.containers, [&](const pods::RuntimeContainer& container) {
    return container.state == pods::ContainerState::Running && !was_killed(container);
  });
}

}  // namespace evictd::agent
