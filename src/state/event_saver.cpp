#include "state/event_saver.hpp"

#include <evictd.pb.h>

#include <memory>
#include <string>
#include <utility>

namespace evictd::state {

std::optional<EventMark> newest_mark(const SavedEvents& saved, const std::optional<EventMark>& of_state) {
  auto mark = saved.read_mark();
  return mark && (!of_state || mark->generation > of_state->generation) ? mark : of_state;
}

events::RescuedEvents rescue(SavedEvents& saved, const EventMark& mark) {
  events::RescuedEvents rescued{.events = {}, .last = mark.last, .reserved = mark.reserved};
  for (const auto& bytes : saved.read(mark)) {
    auto event = std::make_shared<evictd::v1::Event>();
    const auto before = rescued.events.empty() ? 0 : rescued.events.back()->sequence();
    if (!event->ParseFromString(bytes) || event->sequence() <= before || event->sequence() > rescued.last) continue;
    rescued.events.push_back(std::move(event));
  }
  saved.resume_after(mark);
  return rescued;
}

Result<void> EventSaver::save() {
  if (log_.unsaved().empty() && mark_.reserved == log_.reserved()) return {};
  auto saved = write();
  if (saved) saved = save_mark();
  finish();
  return saved;
}

Result<void> EventSaver::write() {
  std::string bytes;
  for (const auto& event : log_.unsaved()) {
    bytes.clear();
    event->AppendToString(&bytes);
    saved_.add(bytes);
  }
  auto written = saved_.write();
  mark_ = saved_.next_mark(log_.last_number(), log_.reserved());
  return written;
}

}  // namespace evictd::state
