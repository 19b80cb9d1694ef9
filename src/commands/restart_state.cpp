#include "commands/restart_state.hpp"

#include <string_view>
#include <utility>

#include "agent/agent.hpp"
#include "agent/kept_state.hpp"
#include "commands/live_thresholds.hpp"
#include "host/descriptor_store.hpp"
#include "host/log.hpp"

namespace evictd::commands {
namespace {

constexpr std::string_view stored_name = "evictd-state";

}  // namespace

RestartState::RestartState(const std::string& path, host::InheritedDescriptors& inherited) : path_{path} {
  if (path.empty()) return;
  auto found = agent::StateFile::open(path, node::FileDescriptor{inherited.take(stored_name)});
  if (!found) {
    host::log_warning("eviction.stateFile: {}: a restart will know nothing of evictions and timers",
                      found.error().message);
    return;
  }
  if (!found->remark.empty()) host::log_warning("eviction.stateFile: {}", found->remark);
  // The checksum was right, so what cannot be read was written by somebody else.
  if (!found_.ParseFromString(found->content)) {
    found_.Clear();
    host::log_warning("eviction.stateFile: {}: what it holds is not evictd's, and is written over", path);
  }
  file_ = std::move(found->file);
}

core::ThresholdOverlay RestartState::live_thresholds() const { return agent::restored(found_.live_thresholds()); }

void RestartState::begin(agent::Agent& agent, const LiveThresholds& thresholds) {
  if (!file_) return;
  agent.resume(found_);
  found_.Clear();
  agent.on_change([this, &agent, &thresholds] { keep(agent, thresholds); });
}

void RestartState::keep(const agent::Agent& agent, const LiveThresholds& thresholds) {
  state::v1::AgentState state;
  agent.add_to(state);
  if (!thresholds.live().empty()) *state.mutable_live_thresholds() = agent::keep(thresholds.live());
  auto bytes = state.SerializeAsString();
  if (bytes == last_) return;
  if (!std::exchange(handed_over_, true)) host::store_descriptor(stored_name, file_->descriptor().get());
  if (const auto stored = file_->store(bytes); stored) {
    last_ = std::move(bytes);
    complained_ = false;
  } else if (!std::exchange(complained_, true)) {
    host::log_warning("eviction.stateFile: {}: a restart will go on from an earlier state", stored.error().message);
  }
}

}  // namespace evictd::commands
