#include "agent/restart.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "host/descriptor_store.hpp"
#include "os/log.hpp"
#include "state/restored_state.hpp"

namespace evictd::agent {

void restore(const state::v1::AgentState& kept, const Survivors& survivors, node::PodCgroups& cgroups, DecisionLog& log,
             core::Duration cleanup_timeout, core::Instant now) {
  auto machine = state::restored(kept.synchronizer());
  for (const auto& record : survivors.evictions.restore(kept, machine.in_flight, cleanup_timeout, now))
    log.failed(record, {"evictd was away for too long: it is left alone"});
  std::vector<node::PodCgroup> victims;
  for (const auto& [uid, record] : survivors.evictions.under_way()) victims.push_back({uid, record.runtime->cgroup});
  cgroups.sync(victims);
  survivors.decider.synchronizer().restore(std::move(machine), now);
  survivors.conditions.restore(kept, survivors.decider.synchronizer().conditions());
}

RestartState::RestartState(state::FoundState found, const Parts& parts) : found_{std::move(found)}, parts_{parts} {
  if (!found_.file) return;
  found_.state.Clear();
  events_.emplace(found_.file->events(), parts_.events);
  parts_.events.save_with(*this);
  save();
}

void RestartState::save() {
  if (!events_) return;
  state::v1::AgentState message;
  *message.mutable_synchronizer() = state::keep(parts_.agent.decider.synchronizer().state());
  parts_.agent.conditions.add_to(message);
  if (!parts_.live.empty()) *message.mutable_live_thresholds() = state::keep(parts_.live);
  auto text = writer_.write(message, parts_.agent.evictions.to_save());
  if (text == last_) return save_events();
  auto& file = *found_.file;
  if (!std::exchange(handed_over_, true)) host::store_descriptor(state::stored_name, file.descriptor().get());
  if (const auto written = events_->write(); !written) complain(written.error());
  const auto size = text.size();
  message.Clear();
  *message.mutable_events() = state::keep(events_->mark());
  message.AppendToString(&text);
  const auto stored = file.store(text);
  if (!stored) static_cast<void>(events_->save_mark());
  events_->finish();
  if (!stored) return complain(stored.error());
  complained_ = false;
  text.resize(size);
  last_ = std::move(text);
  if (writer_.has_shed() && !std::exchange(told_of_shedding_, true))
    os::log_warning("runtimeDirectory: {}: there is more to keep than it holds: a restart will know less of it",
                    found_.path);
}

void RestartState::rehearse(const evict::EvictionRecord& record) {
  state::v1::AgentState message;
  static_cast<void>(state::StateWriter{}.write(message, {{.record = &record}}));
}

/// What changed of the agent's state was kept when it changed: all else that there may be is events. They are told also
/// where they cannot be kept, for evictd goes on without.
void RestartState::save_events() {
  if (const auto saved = events_->save(); !saved) complain(saved.error());
}

void RestartState::complain(const Error& error) {
  if (std::exchange(complained_, true)) return;
  os::log_warning("runtimeDirectory: {}; a restart will go on from an earlier state", error.message);
}

}  // namespace evictd::agent
