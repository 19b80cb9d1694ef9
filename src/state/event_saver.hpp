#pragma once
#include <optional>

#include "core/error.hpp"
#include "events/event_log.hpp"
#include "state/saved_events.hpp"

namespace evictd::state {

/// Of the mark that was saved with the state and the one beside it the newer one.
[[nodiscard]] std::optional<EventMark> newest_mark(const SavedEvents& saved, const std::optional<EventMark>& of_state);

/// The events before the mark. `saved` goes on after it.
[[nodiscard]] events::RescuedEvents rescue(SavedEvents& saved, const EventMark& mark);

/// Saves what is appended to an event log before anybody is told of it. On the reactor; both must outlive this.
class EventSaver {
 public:
  EventSaver(SavedEvents& saved, events::EventLog& log) : saved_{saved}, log_{log} {}

  /// Writes what was appended since the last time, with a mark of its own. Nothing where there is nothing new.
  [[nodiscard]] Result<void> save();

  /// The same in two steps, for a mark that is saved with other state. First: writes the new events.
  [[nodiscard]] Result<void> write();
  /// Then: the mark that covers them.
  [[nodiscard]] const EventMark& mark() const { return mark_; }
  /// Where the other state could not be saved: the mark by itself.
  [[nodiscard]] Result<void> save_mark() { return saved_.save(mark_); }
  /// At last: they may be told.
  void finish() { log_.saved(); }

 private:
  SavedEvents& saved_;
  events::EventLog& log_;
  EventMark mark_;
};

}  // namespace evictd::state
