#include "events/store_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <limits>
#include <thread>
#include <utility>

#include "os/log.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::events {
namespace {

/// What is written survives evictd at once, and a power failure after so long.
constexpr auto sync_interval = 1s;
constexpr auto retry_interval = 1s;
constexpr auto complaint_interval = 1min;
constexpr auto patience = 5s;
/// A disk that works takes what waits in far less. The timer that a look of its own needs is not set before: it would
/// cost a system call on the way to a kill, and a turn of an idle evictd later.
constexpr auto slow = 500ms;

std::string not_kept(std::uint64_t events) {
  return fmt::format("{} not kept over a restart", events == 1 ? "1 event is" : fmt::format("{} events are", events));
}

}  // namespace

void StoreWriter::start() {
  std::thread([self = shared_from_this()] { self->run(); }).detach();  // `finish` waits for it
}

void StoreWriter::take(std::vector<EventPtr> events, std::uint64_t reserve) {
  bool is_behind = false;
  {
    const std::lock_guard lock(mutex_);
    const bool wants_more = reserve > wanted_;
    is_behind = working_since_ || !queue_.empty() || wants_more;
    if (wants_more && reserved_ >= wanted_) wanted_since_ = Clock::now();
    wanted_ = std::max(wanted_, reserve);
    for (auto& event : events) {
      if (queue_.size() < queue_limit)
        queue_.push_back(std::move(event));
      else
        ++lost_;
    }
  }
  wake_.notify_one();
  if (is_behind) look();
}

/// Where nothing waits the next take() looks. Numbers that are not reserved are given once subscribers would have to
/// wait for them, and not before: no evictd that is killed may have given one that the next one gives as well.
void StoreWriter::look() {
  const auto now = Clock::now();
  std::unique_lock lock(mutex_);
  const bool holds_back = log_ != nullptr && log_->last_number() > log_->reserved() && reserved_ < wanted_;
  if (finishing_ || (queue_.empty() && !holds_back)) return;
  const auto since = working_since_.value_or(now);
  const auto give_up_reserving = wanted_since_ + parts_.patience;
  const auto waiting = queue_.size();
  lock.unlock();
  const bool hangs = now >= since + parts_.patience;
  if (hangs && waiting > 0) tell_hanging(since, waiting);
  if (holds_back && now >= give_up_reserving) {
    os::log_warning(
        "stateDirectory: the disk does not answer; should evictd be killed, numbers of events may be given twice");
    log_->reserve(std::numeric_limits<std::uint64_t>::max());
  } else if (holds_back) {
    look_later(give_up_reserving);
  } else if (!hangs && now >= since + slow) {
    look_later(since + parts_.patience);
  }
}

void StoreWriter::look_later(Clock::time_point time) {
  if (next_look_) return;
  next_look_.emplace(parts_.reactor, time);
  next_look_->async_wait([weak = weak_from_this()](const boost::system::error_code& cancelled) {
    const auto self = weak.lock();
    if (cancelled || self == nullptr) return;
    self->next_look_.reset();
    self->look();
  });
}

/// Once for each piece of work that hangs, and again while it does and more is lost.
void StoreWriter::tell_hanging(Clock::time_point since, std::size_t waiting) {
  const auto now = Clock::now();
  if (hanging_told_ && now < *hanging_told_ + complaint_interval) return;
  if (hanging_since_ == since && lost_ == lost_when_complained_) return;
  hanging_since_ = since;
  hanging_told_ = now;
  const auto lost = lost_since_complaint();
  os::log_warning("stateDirectory: the disk does not answer; {} for it{}",
                  waiting == 1 ? "1 event waits" : fmt::format("{} events wait", waiting),
                  lost > 0 ? ", and " + not_kept(lost) : "");
}

bool StoreWriter::finish(std::uint64_t last) {
  std::unique_lock lock(mutex_);
  next_look_.reset();
  finishing_ = true;
  last_ = last;
  wake_.notify_one();
  finished_signal_.wait_for(lock, patience, [this] { return finished_; });
  abandoned_ = true;
  return finished_;
}

void StoreWriter::run() {
  std::unique_lock lock(mutex_);
  for (bool finishing = false; !finishing;) {
    const auto may_reserve = [this] { return wanted_ > parts_.reserved && Clock::now() >= retry_reserving_; };
    const auto has_work = [&] { return finishing_ || !queue_.empty() || may_reserve(); };
    working_since_.reset();
    if (parts_.segments.is_dirty())
      wake_.wait_until(lock, sync_due_, has_work);
    else
      wake_.wait(lock, has_work);
    working_since_ = Clock::now();
    const auto events = std::exchange(queue_, {});
    const auto wanted = wanted_;
    finishing = finishing_;
    lock.unlock();
    if (wanted > parts_.reserved && Clock::now() >= retry_reserving_) reserve(wanted);
    write(events);
    if (parts_.segments.is_dirty() && (finishing || Clock::now() >= sync_due_)) sync();
    lock.lock();
  }
  const auto last = last_;
  lock.unlock();
  if (const auto written = parts_.numbers.write(last); !written) complain(written.error().message);
  parts_.lock.reset();
  lock.lock();
  finished_ = true;
  finished_signal_.notify_all();
}

void StoreWriter::reserve(std::uint64_t end) {
  const auto written = parts_.numbers.write(end);
  if (written) {
    parts_.reserved = end;
    return tell_reserved(end);
  }
  retry_reserving_ = Clock::now() + retry_interval;
  complain(written.error().message + "; should evictd be killed, numbers of events may be given twice");
  tell_reserved(std::numeric_limits<std::uint64_t>::max());
}

void StoreWriter::write(const std::vector<EventPtr>& events) {
  if (events.empty()) return;
  const bool was_dirty = parts_.segments.is_dirty();
  std::string error;
  lost_ += parts_.segments.write(events, error);
  if (!was_dirty) sync_due_ = Clock::now() + sync_interval;
  tell_lost(error);
}

void StoreWriter::sync() {
  std::string error;
  lost_ += parts_.segments.sync(error);
  tell_lost(error);
}

void StoreWriter::tell_lost(const std::string& error) {
  if (!error.empty()) untold_error_ = error;
  if (lost_ > lost_when_complained_) complain(untold_error_.empty() ? "the disk does not keep up" : untold_error_);
}

void StoreWriter::tell_reserved(std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  reserved_ = end;
  wanted_since_ = Clock::now();  // a disk that is slow answers
  if (abandoned_) return;
  asio::post(parts_.reactor, [weak = weak_from_this(), end] {
    if (const auto self = weak.lock(); self && self->log_ != nullptr) self->log_->reserve(end);
  });
}

/// Once for each trouble, and again while it lasts.
void StoreWriter::complain(const std::string& error) {
  const auto now = Clock::now();
  if (complained_ && now < *complained_ + complaint_interval) return;
  complained_ = now;
  os::log_warning("stateDirectory: {}; {}", error, not_kept(lost_since_complaint()));
  untold_error_.clear();
}

/// Any thread: each event is told of once.
std::uint64_t StoreWriter::lost_since_complaint() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t lost = lost_;
  return lost - lost_when_complained_.exchange(lost);
}

}  // namespace evictd::events
