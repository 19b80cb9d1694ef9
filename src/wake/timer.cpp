#include "wake/timer.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;

namespace evictd::wake {

FallbackTimer::FallbackTimer(const asio::any_io_executor& reactor, Wakes& wakes, core::Duration interval)
    : timer_{reactor}, notifier_{wakes, std::string(name)}, interval_{interval} {
  wait();
}

void FallbackTimer::wait() {
  std::uniform_int_distribution<core::Duration::rep> shorter{0, interval_.count() / 10};
  timer_.expires_after(interval_ - core::Duration{shorter(random_)});
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // cancelled: `this` may be gone
    notifier_.wake("every " + core::to_string(interval_));
    wait();
  });
}

std::vector<SourceStatus> FallbackTimer::status() const {
  auto status = notifier_.status(std::string(name), "every " + core::to_string(interval_));
  status.detail = fmt::format("{} crossings missed by every notifier", missed_);
  return {status};
}

Deadline::Deadline(const asio::any_io_executor& reactor, Wakes& wakes)
    : timer_{reactor}, notifier_{wakes, "deadline"} {}

void Deadline::set(std::optional<core::Instant> time) {
  set_ = time.has_value();
  timer_.cancel();
  if (!time) return;
  timer_.expires_at(*time);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // replaced, or `this` is gone
    set_ = false;
    notifier_.wake("the end of a grace or transition period");
  });
}

std::vector<SourceStatus> Deadline::status() const {
  return {notifier_.status("deadline", set_ ? "armed" : "waiting: nothing has an end")};
}

}  // namespace evictd::wake
