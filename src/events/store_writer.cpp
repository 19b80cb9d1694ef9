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

}  // namespace

void StoreWriter::start() {
  std::thread([self = shared_from_this()] { self->run(); }).detach();  // `finish` waits for it
}

void StoreWriter::take(std::vector<EventPtr> events, std::uint64_t reserve) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = std::max(wanted_, reserve);
    for (auto& event : events) {
      if (queue_.size() < queue_limit)
        queue_.push_back(std::move(event));
      else
        ++lost_;
    }
  }
  wake_.notify_one();
}

bool StoreWriter::finish(std::uint64_t last) {
  std::unique_lock lock(mutex_);
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
    if (parts_.segments.is_dirty())
      wake_.wait_until(lock, sync_due_, has_work);
    else
      wake_.wait(lock, has_work);
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
  const std::uint64_t lost_in_all = lost_;
  const auto lost = lost_in_all - std::exchange(lost_when_complained_, lost_in_all);
  os::log_warning("stateDirectory: {}; {} not kept over a restart", error,
                  lost == 1 ? "1 event is" : fmt::format("{} events are", lost));
  untold_error_.clear();
}

}  // namespace evictd::events
