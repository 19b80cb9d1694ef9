#pragma once
#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "events/turns.hpp"

namespace evictd::v1 {
class Event;
}

namespace evictd::events {

/// Shared by the log, by the messages under way to subscribers and by the store; no part changes an event once it has
/// its number.
using EventPtr = std::shared_ptr<const v1::Event>;

struct EventLogLimits {
  std::size_t history = 4096;  ///< events kept for those who subscribe or resume later; at least 1
  std::size_t subscriber_queue =
      256;  ///< events that may wait for a subscriber before it misses the oldest; at least 1
};

/// What agents before this one have left.
struct EarlierEvents {
  std::vector<EventPtr> events{};  ///< with rising numbers, which may have holes
  std::uint64_t last = 0;          ///< no number up to here is given again; not below any of `events`
  /// Numbers up to here are this agent's to give; see EventLog::reserve.
  std::uint64_t reserved = std::numeric_limits<std::uint64_t>::max();
};

/// What an evictd that was killed has left of its events in its state (state in runtimeDirectory), where they are
/// before anybody is told of them.
struct RescuedEvents {
  std::vector<EventPtr> events{};  ///< the newest ones, with rising numbers, which may have holes
  std::uint64_t last = 0;          ///< the last number that it gave; 0: none is known
  std::uint64_t reserved = 0;      ///< its EarlierEvents::reserved, or what came after it
};

/// `earlier` with those events that only `rescued` has, and its last number where that is higher.
[[nodiscard]] EarlierEvents merged(EarlierEvents earlier, const RescuedEvents& rescued);

class Subscription;

/// Hears of every event. On the reactor.
class EventListener {
 public:
  EventListener() = default;
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;
  virtual ~EventListener() = default;

  /// Called within `append`: it must be quick, and may not append.
  virtual void appended(const EventPtr& event) = 0;
};

/// Saves events before subscribers are told of them. On the reactor.
class SavesEvents {
 public:
  SavesEvents() = default;
  SavesEvents(const SavesEvents&) = delete;
  SavesEvents& operator=(const SavesEvents&) = delete;
  virtual ~SavesEvents() = default;

  /// Has to call EventLog::saved().
  virtual void save_events() = 0;
};

/// Numbers what happens and keeps the last of it.
///
/// There is one queue for everybody: the kept history. A subscription is a place in it, so following on from a snapshot
/// cannot miss or repeat an event, a thousand subscribers cost a thousand numbers, and a slow one holds up nothing:
/// where it fell too far behind, it reads a GAP.
///
/// Lives on the reactor.
class EventLog {
 public:
  /// `reactor` is where subscribers are told of new events.
  explicit EventLog(boost::asio::any_io_executor reactor, EventLogLimits limits = {}, EarlierEvents earlier = {});
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  /// Gives the event the next number, both times where they are not set, and texts that are UTF-8; an EVICTION_INTENDED
  /// becomes its own eviction_id. Subscribers are told after the current handler, a slice of time for each handler, so
  /// a decision under way pays for no delivery. The reference holds until `history` more were appended.
  const v1::Event& append(v1::Event event);

  /// The oldest event kept; last_sequence() + 1 where there is none. Numbers after it may be missing: those of events
  /// that an earlier agent lost.
  [[nodiscard]] std::uint64_t first_sequence() const;
  /// The newest event that may be told; 0: there was none yet.
  [[nodiscard]] std::uint64_t last_sequence() const { return std::min({last_, reserved_, saved_}); }

  /// Events that are kept and may be told.
  [[nodiscard]] std::size_t kept() const;
  /// After this number come the last `count` events that may be told, or all that are kept where those are fewer. Since
  /// numbers may be missing it can be far below last_sequence() - count.
  [[nodiscard]] std::uint64_t before_last(std::size_t count) const;

  /// Numbers up to `end` are never given again, whatever happens. Events beyond them are numbered, but nobody is told
  /// of them before.
  void reserve(std::uint64_t end);
  [[nodiscard]] std::uint64_t reserved() const { return reserved_; }
  /// The last number that was given, to an event that may not be told yet.
  [[nodiscard]] std::uint64_t last_number() const { return last_; }

  /// From now on no subscriber is told of an event before saved() was called, so that a number that was seen means the
  /// same event after SIGKILL. `saver` is called after the handler that appended, before the store takes the events,
  /// and also once more numbers are reserved; no handler may run once it has gone. To be called before the reactor
  /// runs: what this log has appended so far is not saved either.
  void save_with(SavesEvents& saver);
  /// The events that were appended since the last call of saved(), as far as the history still has them.
  [[nodiscard]] std::vector<EventPtr> unsaved() const;
  /// All that was appended so far is saved, or cannot be and is told all the same.
  void saved();

  /// The one that stores the events.
  void store_with(std::shared_ptr<EventListener> store) { store_ = std::move(store); }
  /// Another listener, which is called after the store: one that counts them. Null: none from now on.
  void observe(EventListener* observer) { observer_ = observer; }

  /// Reads on from the event after number `after` (at most last_sequence()). `ready` is called on the reactor once
  /// there is something to read again after `next` had nothing; never from within `append` or `next`. The subscription
  /// may not outlive the log.
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(std::uint64_t after, std::function<void()> ready);
  /// The same for those who take turns() for other reasons, too.
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(std::uint64_t after, std::shared_ptr<Turns::Taker> taker);
  [[nodiscard]] std::size_t subscribers() const { return subscribers_; }
  /// Events that subscribers were too slow for, each counted once for each of them. A number that no event had is none.
  [[nodiscard]] std::uint64_t missed() const { return missed_; }

  /// In which subscribers are told. For all that many clients may want at the same time.
  [[nodiscard]] Turns& turns() { return *turns_; }
  [[nodiscard]] const boost::asio::any_io_executor& get_executor() const { return reactor_; }

 private:
  friend class Subscription;
  using Place = std::deque<EventPtr>::const_iterator;
  /// The first event kept that has this number (at most last_ + 1) or a higher one.
  [[nodiscard]] Place find(std::uint64_t sequence) const;
  /// Events that this log had before the one at this place, those that it does not keep any more included.
  [[nodiscard]] std::uint64_t count_before(Place place) const;

  /// What save_with() asked for. Handlers that were posted may run when the log is gone.
  struct Saving {
    SavesEvents& saver;
    bool posted = false;
  };
  void save_later();

  boost::asio::any_io_executor reactor_;
  EventLogLimits limits_;
  std::deque<EventPtr> kept_;
  std::uint64_t dropped_ = 0;  // events that were kept and are not any more
  std::uint64_t last_;
  std::uint64_t reserved_;
  const std::uint64_t earlier_ = last_;  // the last number of agents before this one
  std::uint64_t saved_ = std::numeric_limits<std::uint64_t>::max();
  std::shared_ptr<Saving> saving_;        // null: telling waits for no saving
  std::shared_ptr<EventListener> store_;  // null: none
  std::size_t subscribers_ = 0;
  EventListener* observer_ = nullptr;
  std::uint64_t missed_ = 0;
  std::shared_ptr<Turns> turns_;  // shared with posted handlers, which may run when the log is gone
};

/// A subscriber's place in the log; destroying it ends the subscription.
class Subscription {
 public:
  Subscription(EventLog& log, std::uint64_t after, std::shared_ptr<Turns::Taker> taker);
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  /// The next event, or a GAP in place of those that are no longer there: beyond the history, lost by an earlier agent,
  /// or, once the subscriber had caught up, further back than its queue is long. Null: everything was read, and the
  /// subscriber will be told when there is more.
  [[nodiscard]] EventPtr next();

  /// The number that was read last: where to resume.
  [[nodiscard]] std::uint64_t position() const { return next_ - 1; }

 private:
  [[nodiscard]] std::uint64_t oldest_within_reach() const;

  EventLog& log_;
  std::uint64_t next_;
  std::uint64_t passed_ = 0;  // once it has begun: events of the log before next_
  bool begun_ = false;
  bool caught_up_ = false;
  std::shared_ptr<Turns::Taker> taker_;
};

/// Gives the event the times of now where it has none.
void stamp(v1::Event& event);

}  // namespace evictd::events
