#include "async/turns.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

namespace evictd::async {
namespace {

core::Duration processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

thread_local Turns* Turns::current_ = nullptr;

void Turns::began() {
  processor_time_ = processor_time();
  doing_.store(Turn{}.doing, std::memory_order_relaxed);
  begin_.store(std::chrono::steady_clock::now().time_since_epoch().count(), std::memory_order_release);
}

void Turns::ended() {
  const auto begin = begin_.exchange(none, std::memory_order_acq_rel);
  const auto end = std::chrono::steady_clock::now();
  const auto took = end - core::Instant{core::Duration{begin}};
  if (begin == none || (took <= busiest_ && took <= bound_)) return;
  const auto on_processor = processor_time() - processor_time_;
  busiest_ = std::max(busiest_, on_processor);
  if (took <= bound_) return;
  const std::scoped_lock lock{mutex_};
  if (long_.size() >= kept) return;
  long_.push_back(
      {.begin = core::Instant{core::Duration{begin}}, .end = end, .on_processor = on_processor, .doing = doing_});
  long_one_ended_.notify_one();
}

void Turns::wait_until(core::Instant due, const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  long_one_ended_.wait_until(lock, stop, due, [this] { return !long_.empty(); });
}

std::vector<Turn> Turns::take() {
  const std::scoped_lock lock{mutex_};
  return std::exchange(long_, {});
}

std::optional<Turn> Turns::under_way() const {
  const auto begin = begin_.load(std::memory_order_acquire);
  if (begin == none) return std::nullopt;
  return Turn{.begin = core::Instant{core::Duration{begin}}, .end = std::chrono::steady_clock::now(), .doing = doing_};
}

int wait_for_events(int epoll, epoll_event* events, int capacity, int timeout) {
  auto* const turns = Turns::current_;
  if (turns != nullptr) turns->ended();
  const int count = ::epoll_wait(epoll, events, capacity, timeout);
  const int error = errno;
  if (turns != nullptr) turns->began();
  errno = error;
  return count;
}

}  // namespace evictd::async
