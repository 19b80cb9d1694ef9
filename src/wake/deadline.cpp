#include "wake/deadline.hpp"

namespace asio = boost::asio;

namespace evictd::wake {

Deadline::Deadline(const asio::any_io_executor& reactor, Wakes& wakes)
    : timer_{reactor}, notifier_{wakes, core::WakeSource::Deadline} {}

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
