#include "wake/timer.hpp"

namespace asio = boost::asio;

namespace evictd::wake {

FallbackTimer::FallbackTimer(asio::any_io_executor reactor, Wakes& wakes, core::Duration interval)
    : timer_{std::move(reactor)}, wakes_{wakes}, interval_{interval} {
  wait();
}

void FallbackTimer::wait() {
  timer_.expires_after(interval_);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // cancelled: `this` may be gone
    ++wakes_count_;
    last_wake_ = std::chrono::steady_clock::now();
    wakes_.notify({"timer", "every " + core::to_string(interval_), *last_wake_});
    wait();
  });
}

std::vector<SourceStatus> FallbackTimer::status() const {
  return {{.name = "timer",
           .state = "every " + core::to_string(interval_),
           .wakes = wakes_count_,
           .last_wake = last_wake_}};
}

Deadline::Deadline(asio::any_io_executor reactor, Wakes& wakes) : timer_{std::move(reactor)}, wakes_{wakes} {}

void Deadline::set(std::optional<core::Instant> time) {
  set_ = time.has_value();
  timer_.cancel();
  if (!time) return;
  timer_.expires_at(*time);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // replaced, or `this` is gone
    set_ = false;
    ++wakes_count_;
    last_wake_ = std::chrono::steady_clock::now();
    wakes_.notify({"deadline", "the end of a grace or transition period", *last_wake_});
  });
}

std::vector<SourceStatus> Deadline::status() const {
  return {{.name = "deadline", .state = set_ ? "set" : "none", .wakes = wakes_count_, .last_wake = last_wake_}};
}

}  // namespace evictd::wake
