#include "state/found_state.hpp"

#include <utility>

#include "os/log.hpp"
#include "state/restored_state.hpp"

namespace evictd::state {

FoundState FoundState::read(const std::string& path, os::FileDescriptor inherited) {
  FoundState found{.path = path};
  if (path.empty()) return found;
  auto opened = StateFile::open(path, std::move(inherited));
  if (!opened) {
    os::log_warning("runtimeDirectory: {}: a restart will know nothing of evictions and timers",
                    opened.error().message);
    return found;
  }
  if (!opened->remark.empty()) os::log_warning("runtimeDirectory: {}", opened->remark);
  // The checksum was right, so what cannot be read was written by another program.
  if (!found.state.ParseFromString(opened->content)) {
    found.state.Clear();
    os::log_warning("runtimeDirectory: {}: what it holds is not evictd's, and is written over", path);
  }
  found.file = std::move(opened->file);
  return found;
}

events::RescuedEvents FoundState::events() {
  if (!file) return {};
  const auto of_state = state.has_events() ? std::optional(restored(state.events())) : std::nullopt;
  const auto mark = newest_mark(file->events(), of_state);
  return mark ? rescue(file->events(), *mark) : events::RescuedEvents{};
}

core::ThresholdOverlay FoundState::live_thresholds() const { return restored(state.live_thresholds()); }

}  // namespace evictd::state
