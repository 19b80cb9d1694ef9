#include "host/systemd.hpp"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <cstdint>

namespace evictd::host {

ServiceManager::ServiceManager(boost::asio::any_io_executor reactor) : timer_{reactor} {
  std::uint64_t interval = 0;
  if (sd_watchdog_enabled(0, &interval) > 0) watchdog_interval_ = std::chrono::microseconds(interval);
}

void ServiceManager::ready() {
  sd_notify(0, "READY=1");
  if (watchdog_interval_) feed_watchdog();
}

void ServiceManager::status(std::string_view text) {
  if (text == status_) return;
  status_ = text;
  sd_notify(0, fmt::format("STATUS={}", status_).c_str());
}

void ServiceManager::stopping() {
  timer_.cancel();
  sd_notify(0, "STOPPING=1");
}

/// From the reactor itself: a reactor that hangs stops feeding. Three times per interval, so that one late turn is no
/// restart.
void ServiceManager::feed_watchdog() {
  sd_notify(0, "WATCHDOG=1");
  timer_.expires_after(*watchdog_interval_ / 3);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) feed_watchdog();
  });
}

}  // namespace evictd::host
