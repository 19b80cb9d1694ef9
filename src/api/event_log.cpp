#include "api/event_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "evictd.pb.h"

namespace asio = boost::asio;

namespace evictd::api {
namespace {

std::int64_t nanoseconds(auto since_epoch) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
}

/// steady_clock is CLOCK_MONOTONIC on Linux.
void stamp(v1::Event& event) {
  if (!event.has_time()) {
    const std::int64_t now = nanoseconds(std::chrono::system_clock::now().time_since_epoch());
    event.mutable_time()->set_seconds(now / 1'000'000'000);
    event.mutable_time()->set_nanos(static_cast<std::int32_t>(now % 1'000'000'000));
  }
  if (event.monotonic_ns() == 0)
    event.set_monotonic_ns(nanoseconds(std::chrono::steady_clock::now().time_since_epoch()));
}

EventPtr make_gap(std::uint64_t from, std::uint64_t to) {
  auto gap = std::make_shared<v1::Event>();
  gap->set_kind(v1::Event::GAP);
  gap->set_sequence(to);
  gap->mutable_gap()->set_from(from);
  gap->mutable_gap()->set_to(to);
  gap->set_message(from == to ? fmt::format("event {} was missed: it is no longer kept", from)
                              : fmt::format("events {} to {} were missed: they are no longer kept", from, to));
  stamp(*gap);
  return gap;
}

}  // namespace

struct EventLog::Waiter {
  std::function<void()> ready;
  bool waiting = false;  // has read everything and was not told of more yet
};

/// Tells the subscribers that wait, one a turn of the loop: with a hundred of them a reply from containerd still waits
/// for one write only.
class EventLog::Notices : public std::enable_shared_from_this<Notices> {
 public:
  explicit Notices(asio::any_io_executor reactor) : reactor_(std::move(reactor)) {}

  void announce() {
    fresh_ = true;
    if (!std::exchange(posted_, true)) post();
  }

  void wait(const std::shared_ptr<Waiter>& waiter) {
    if (!std::exchange(waiter->waiting, true)) waiting_.push_back(waiter);
  }

  /// A subscription ended. Without this, clients that come and go on a quiet node would pile up.
  void forget_expired() {
    std::erase_if(waiting_, [](const auto& waiter) { return waiter.expired(); });
  }

 private:
  void post() {
    asio::post(reactor_, [self = shared_from_this()] { self->tell_one(); });
  }

  void tell_one() {
    if (due_.empty() && std::exchange(fresh_, false)) {
      due_ = std::exchange(waiting_, {});
      std::ranges::reverse(due_);
    }
    if (due_.empty()) {
      posted_ = false;
      return;
    }
    const auto waiter = due_.back().lock();
    due_.pop_back();
    if (waiter) {
      waiter->waiting = false;
      waiter->ready();
    }
    post();
  }

  asio::any_io_executor reactor_;
  std::vector<std::weak_ptr<Waiter>> waiting_;  // have read everything
  std::vector<std::weak_ptr<Waiter>> due_;      // are to be told in this round, the last first
  bool fresh_ = false;                          // an event came after the round began
  bool posted_ = false;
};

EventLog::EventLog(asio::any_io_executor reactor, EventLogLimits limits)
    : reactor_(std::move(reactor)),
      limits_{std::max<std::size_t>(limits.history, 1), std::max<std::size_t>(limits.subscriber_queue, 1)},
      notices_(std::make_shared<Notices>(reactor_)) {}

EventLog::~EventLog() = default;

const v1::Event& EventLog::append(v1::Event event) {
  event.set_sequence(++last_);
  if (event.kind() == v1::Event::EVICTION_INTENDED) event.set_eviction_id(last_);
  stamp(event);
  if (kept_.size() == limits_.history) kept_.pop_front();
  kept_.push_back(std::make_shared<const v1::Event>(std::move(event)));
  notices_->announce();
  if (observer_) observer_(*kept_.back());
  return *kept_.back();
}

std::unique_ptr<Subscription> EventLog::subscribe(std::uint64_t after, std::function<void()> ready) {
  return std::make_unique<Subscription>(*this, after, std::move(ready));
}

Subscription::Subscription(EventLog& log, std::uint64_t after, std::function<void()> ready)
    : log_(log),
      next_(std::min(after, log.last_sequence()) + 1),
      waiter_(std::make_shared<EventLog::Waiter>(std::move(ready))) {
  ++log_.subscribers_;
}

Subscription::~Subscription() {
  --log_.subscribers_;
  waiter_.reset();
  log_.notices_->forget_expired();
}

EventPtr Subscription::next() {
  if (next_ > log_.last_sequence()) {
    caught_up_ = true;
    log_.notices_->wait(waiter_);
    return nullptr;
  }
  const std::uint64_t oldest = oldest_within_reach();
  if (next_ < oldest && caught_up_) log_.missed_ += oldest - next_;
  if (next_ < oldest) return make_gap(std::exchange(next_, oldest), oldest - 1);
  return log_.kept_[next_++ - log_.first_sequence()];
}

std::uint64_t Subscription::oldest_within_reach() const {
  const std::uint64_t kept = log_.first_sequence();
  const std::uint64_t queue = log_.limits_.subscriber_queue;
  if (!caught_up_ || log_.last_sequence() < queue) return kept;
  return std::max(kept, log_.last_sequence() + 1 - queue);
}

}  // namespace evictd::api
