#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

namespace evictd::v1 {
class Event;
}

namespace evictd::api {

/// Shared by the log and by the messages under way to subscribers; nobody changes an event once it has its number.
using EventPtr = std::shared_ptr<const v1::Event>;

struct EventLogLimits {
  std::size_t history = 4096;  ///< events kept for those who subscribe or resume later; at least 1
  std::size_t subscriber_queue =
      256;  ///< events that may wait for a subscriber before it misses the oldest; at least 1
};

class Subscription;

/// Numbers what happens and keeps the last of it.
///
/// There is one queue for everybody: the kept history. A subscription is a place in it, so following on from a snapshot
/// cannot miss or repeat an event, a hundred subscribers cost a hundred numbers, and a slow one holds up nothing: where
/// it fell too far behind, it reads a GAP.
///
/// Lives on the reactor.
class EventLog {
 public:
  /// `reactor` is where subscribers are told of new events.
  explicit EventLog(boost::asio::any_io_executor reactor, EventLogLimits limits = {});
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  /// Gives the event the next number, and both times where they are not set; an EVICTION_INTENDED becomes its own
  /// eviction_id. Subscribers are told after the current handler, one a handler, so a decision under way pays for no
  /// delivery. The reference holds until `history` more were appended.
  const v1::Event& append(v1::Event event);

  /// Called with every event, from within `append`, once it has its number: nothing is missed, so it must be quick and
  /// may not append. One observer; empty: nobody.
  void observe(std::function<void(const v1::Event&)> observer) { observer_ = std::move(observer); }

  /// The oldest event kept; last_sequence() + 1 where there is none.
  [[nodiscard]] std::uint64_t first_sequence() const { return last_ + 1 - kept_.size(); }
  /// The newest event; 0: there was none yet.
  [[nodiscard]] std::uint64_t last_sequence() const { return last_; }

  /// Reads on from the event after number `after` (at most last_sequence()). `ready` is called on the reactor once
  /// there is something to read again after `next` had nothing; never from within `append` or `next`. The subscription
  /// may not outlive the log.
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(std::uint64_t after, std::function<void()> ready);
  [[nodiscard]] std::size_t subscribers() const { return subscribers_; }
  /// Events that subscribers were too slow for, each counted once for each of them.
  [[nodiscard]] std::uint64_t missed() const { return missed_; }

  [[nodiscard]] const boost::asio::any_io_executor& get_executor() const { return reactor_; }

 private:
  friend class Subscription;
  class Notices;
  struct Waiter;

  boost::asio::any_io_executor reactor_;
  EventLogLimits limits_;
  std::deque<EventPtr> kept_;
  std::uint64_t last_ = 0;
  std::size_t subscribers_ = 0;
  std::function<void(const v1::Event&)> observer_;
  std::uint64_t missed_ = 0;
  std::shared_ptr<Notices> notices_;  // shared with posted handlers, which may run when the log is gone
};

/// A subscriber's place in the log; destroying it ends the subscription.
class Subscription {
 public:
  Subscription(EventLog& log, std::uint64_t after, std::function<void()> ready);
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  /// The next event, or a GAP in place of those that are no longer there: beyond the history, or, once the subscriber
  /// had caught up, further back than its queue is long. Null: everything was read, and `ready` will be called.
  [[nodiscard]] EventPtr next();

 private:
  [[nodiscard]] std::uint64_t oldest_within_reach() const;

  EventLog& log_;
  std::uint64_t next_;
  bool caught_up_ = false;
  std::shared_ptr<EventLog::Waiter> waiter_;
};

}  // namespace evictd::api
