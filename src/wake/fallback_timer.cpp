#include "wake/fallback_timer.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/duration.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;

namespace evictd::wake {

FallbackTimer::FallbackTimer(const asio::any_io_executor& reactor, Wakes& wakes, core::Duration interval)
    : timer_{reactor}, notifier_{wakes, core::WakeSource::Timer}, interval_{interval} {
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
  auto status =
      notifier_.status(std::string(core::name(core::WakeSource::Timer)), "every " + core::to_string(interval_));
  status.detail = fmt::format("{} crossings missed by every notifier", missed_);
  return {status};
}

}  // namespace evictd::wake
