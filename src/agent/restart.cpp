#include "agent/restart.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include "host/descriptor_store.hpp"
#include "os/log.hpp"
#include "state/kept_state.hpp"

namespace evictd::agent {
namespace {

constexpr std::string_view stored_name = "evictd-state";

}  // namespace

void Restartable::restore(const state::v1::AgentState& kept) const {
  auto machine = state::restored(kept.synchronizer());
  evictions.restore(kept, machine.in_flight);
  std::vector<node::PodCgroup> victims;
  for (const auto& [uid, record] : evictions.under_way()) victims.push_back({uid, record.runtime->cgroup});
  cgroups.sync(victims);
  agent.restore(std::move(machine));
  reports.restore(kept, agent.synchronizer().conditions());
}

void Restartable::add_to(state::v1::AgentState& kept) const {
  *kept.mutable_synchronizer() = state::keep(agent.synchronizer().state());
  reports.add_to(kept);
}

RestartState::RestartState(const std::string& path, host::InheritedDescriptors& inherited) : path_{path} {
  if (path.empty()) return;
  auto found = state::StateFile::open(path, os::FileDescriptor{inherited.take(stored_name)});
  if (!found) {
    os::log_warning("runtimeDirectory: {}: a restart will know nothing of evictions and timers", found.error().message);
    return;
  }
  if (!found->remark.empty()) os::log_warning("runtimeDirectory: {}", found->remark);
  // The checksum was right, so what cannot be read was written by another program.
  if (!found_.ParseFromString(found->content)) {
    found_.Clear();
    os::log_warning("runtimeDirectory: {}: what it holds is not evictd's, and is written over", path);
  }
  file_ = std::move(found->file);
}

events::RescuedEvents RestartState::take_events() {
  if (!file_) return {};
  const auto of_state = found_.has_events() ? std::optional(state::restored(found_.events())) : std::nullopt;
  const auto mark = state::newest_mark(file_->events(), of_state);
  return mark ? state::rescue(file_->events(), *mark) : events::RescuedEvents{};
}

core::ThresholdOverlay RestartState::live_thresholds() const { return state::restored(found_.live_thresholds()); }

void RestartState::begin(const Restartable& agent, const core::ThresholdOverlay& live, events::EventLog& events) {
  if (!file_) return;
  agent.restore(found_);
  found_.Clear();
  kept_.emplace(Kept{agent, live, {file_->events(), events}});
  events.save_with(*this);
  keep();
}

void RestartState::save() {
  if (kept_) keep();
}

void RestartState::keep() {
  state::v1::AgentState message;
  kept_->agent.add_to(message);
  if (const auto& live = kept_->live; !live.empty()) *message.mutable_live_thresholds() = state::keep(live);
  auto text = writer_.write(message, kept_->agent.evictions.to_save());
  if (text == last_) return save_events();
  if (!std::exchange(handed_over_, true)) host::store_descriptor(stored_name, file_->descriptor().get());
  if (const auto written = kept_->events.write(); !written) complain(written.error());
  const auto size = text.size();
  message.Clear();
  *message.mutable_events() = state::keep(kept_->events.mark());
  message.AppendToString(&text);
  const auto stored = file_->store(text);
  if (!stored) static_cast<void>(kept_->events.save_mark());
  kept_->events.finish();
  if (!stored) return complain(stored.error());
  complained_ = false;
  text.resize(size);
  last_ = std::move(text);
  if (writer_.has_shed() && !std::exchange(told_of_shedding_, true))
    os::log_warning("runtimeDirectory: {}: there is more to keep than it holds: a restart will know less of it", path_);
}

/// What changed of the agent's state was kept when it changed: all else that there may be is events. They are told also
/// where they cannot be kept, for evictd goes on without.
void RestartState::save_events() {
  if (const auto saved = kept_->events.save(); !saved) complain(saved.error());
}

void RestartState::complain(const Error& error) {
  if (std::exchange(complained_, true)) return;
  os::log_warning("runtimeDirectory: {}; a restart will go on from an earlier state", error.message);
}

}  // namespace evictd::agent
