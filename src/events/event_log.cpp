#include "events/event_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "events/valid_texts.hpp"
#include "evictd.pb.h"

namespace asio = boost::asio;

namespace evictd::events {
namespace {

std::int64_t nanoseconds(auto since_epoch) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
}

EventPtr make_gap(std::uint64_t from, std::uint64_t to, bool was_kept) {
  auto gap = std::make_shared<v1::Event>();
  gap->set_kind(v1::Event::GAP);
  gap->set_sequence(to);
  gap->mutable_gap()->set_from(from);
  gap->mutable_gap()->set_to(to);
  const auto which = from == to ? fmt::format("event {} was", from) : fmt::format("events {} to {} were", from, to);
  gap->set_message(fmt::format("{} missed: {}", which,
                               !was_kept    ? "an earlier evictd was killed, or could not write them down"
                               : from == to ? "it is no longer kept"
                                            : "they are no longer kept"));
  stamp(*gap);
  return gap;
}

}  // namespace

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

EarlierEvents merged(EarlierEvents earlier, const RescuedEvents& rescued) {
  const auto number = [](const EventPtr& event) { return event->sequence(); };
  std::vector<EventPtr> all;
  std::ranges::set_union(earlier.events, rescued.events, std::back_inserter(all), {}, number, number);
  earlier.events = std::move(all);
  earlier.last = std::max({earlier.last, rescued.last, earlier.events.empty() ? 0 : earlier.events.back()->sequence()});
  return earlier;
}

EventLog::EventLog(asio::any_io_executor reactor, EventLogLimits limits, EarlierEvents earlier)
    : reactor_(std::move(reactor)),
      limits_{std::max<std::size_t>(limits.history, 1), std::max<std::size_t>(limits.subscriber_queue, 1)},
      last_(earlier.last),
      reserved_(earlier.reserved),
      turns_(std::make_shared<Turns>(reactor_)) {
  const auto kept = std::min(earlier.events.size(), limits_.history);
  kept_.assign(earlier.events.end() - static_cast<std::ptrdiff_t>(kept), earlier.events.end());
  prepare_texts(*v1::Event::descriptor());
}

EventLog::~EventLog() { turns_->stop(); }

const v1::Event& EventLog::append(v1::Event event) {
  event.set_sequence(++last_);
  if (event.kind() == v1::Event::EVICTION_INTENDED) event.set_eviction_id(last_);
  stamp(event);
  make_texts_valid(event);
  if (kept_.size() == limits_.history) {
    kept_.pop_front();
    ++dropped_;
  }
  kept_.push_back(std::make_shared<const v1::Event>(std::move(event)));
  save_later();
  if (store_ != nullptr) store_->appended(kept_.back());
  if (observer_ != nullptr) observer_->appended(kept_.back());
  turns_->announce();
  return *kept_.back();
}

std::uint64_t EventLog::first_sequence() const {
  const auto after_last = last_sequence() + 1;
  return kept_.empty() ? after_last : std::min(kept_.front()->sequence(), after_last);
}

std::size_t EventLog::kept() const { return static_cast<std::size_t>(find(last_sequence() + 1) - kept_.begin()); }

std::uint64_t EventLog::before_last(std::size_t count) const {
  const auto tellable = kept();
  return count < tellable ? kept_[tellable - count - 1]->sequence() : first_sequence() - 1;
}

void EventLog::reserve(std::uint64_t end) {
  if (end <= reserved_) return;
  const bool held_back = last_ > reserved_;
  reserved_ = end;
  save_later();
  if (held_back) turns_->announce();
}

void EventLog::save_with(SavesEvents& saver) {
  saving_ = std::make_shared<Saving>(Saving{saver});
  saved_ = earlier_;
}

/// What is posted runs in order: telling subscribers of the event, or writing it to a disk, is posted afterwards.
void EventLog::save_later() {
  if (saving_ == nullptr || std::exchange(saving_->posted, true)) return;
  asio::post(reactor_, [weak = std::weak_ptr(saving_)] {
    const auto saving = weak.lock();
    if (saving == nullptr) return;
    saving->posted = false;
    saving->saver.save_events();
  });
}

std::vector<EventPtr> EventLog::unsaved() const {
  const auto count = std::min<std::uint64_t>(last_ - std::min(saved_, last_), kept_.size());
  return {kept_.end() - static_cast<std::ptrdiff_t>(count), kept_.end()};
}

void EventLog::saved() {
  if (saving_ == nullptr || saved_ == last_) return;
  saved_ = last_;
  turns_->announce();
}

EventLog::Place EventLog::find(std::uint64_t sequence) const {
  if (sequence > last_) return kept_.end();
  const auto from_end = last_ - sequence;  // after the last hole: all numbers are there
  if (from_end < kept_.size()) {
    const auto place = kept_.end() - 1 - static_cast<std::ptrdiff_t>(from_end);
    if ((*place)->sequence() == sequence) return place;
  }
  return std::ranges::lower_bound(kept_, sequence, {}, [](const EventPtr& event) { return event->sequence(); });
}

std::uint64_t EventLog::count_before(Place place) const {
  return dropped_ + static_cast<std::uint64_t>(place - kept_.begin());
}

std::unique_ptr<Subscription> EventLog::subscribe(std::uint64_t after, std::function<void()> ready) {
  return subscribe(after, std::make_shared<Turns::Taker>(std::move(ready)));
}

std::unique_ptr<Subscription> EventLog::subscribe(std::uint64_t after, std::shared_ptr<Turns::Taker> taker) {
  return std::make_unique<Subscription>(*this, after, std::move(taker));
}

Subscription::Subscription(EventLog& log, std::uint64_t after, std::shared_ptr<Turns::Taker> taker)
    : log_(log), next_(std::min(after, log.last_sequence()) + 1), taker_(std::move(taker)) {
  ++log_.subscribers_;
}

Subscription::~Subscription() {
  --log_.subscribers_;
  taker_.reset();
  log_.turns_->forget_one();
}

EventPtr Subscription::next() {
  if (!std::exchange(begun_, true)) passed_ = log_.count_before(log_.find(next_));
  const auto last = log_.last_sequence();
  if (next_ > last) {
    caught_up_ = true;
    log_.turns_->wait(taker_);
    return nullptr;
  }
  const auto within_reach = oldest_within_reach();
  const auto found = log_.find(std::min(std::max(next_, within_reach), last));
  const auto there = found == log_.kept_.end() ? last + 1 : std::min((*found)->sequence(), last + 1);
  const auto before = log_.count_before(found);
  log_.missed_ += before - std::exchange(passed_, before);
  if (there == next_) {
    ++next_;
    ++passed_;
    return *found;
  }
  const bool was_kept = next_ < within_reach;
  return make_gap(std::exchange(next_, there), there - 1, was_kept);
}

std::uint64_t Subscription::oldest_within_reach() const {
  const std::uint64_t kept = log_.first_sequence();
  const std::uint64_t queue = log_.limits_.subscriber_queue;
  const auto last = log_.last_sequence();
  if (!caught_up_ || last < queue) return kept;
  return std::max(kept, last + 1 - queue);
}

}  // namespace evictd::events
