#include "host/systemd.hpp"

#include <systemd/sd-daemon.h>

#include <cstdint>

namespace evictd::host {

ServiceManager::ServiceManager(boost::asio::any_io_executor reactor, Notifications& notifications)
    : notifications_{notifications}, watchdog_timer_{reactor}, retry_timer_{reactor} {
  std::uint64_t interval = 0;
  if (sd_watchdog_enabled(0, &interval) > 0) watchdog_interval_ = std::chrono::microseconds(interval);
  notifications_.listen(this);
  send();
}

ServiceManager::~ServiceManager() {
  notifications_.listen(nullptr);
  static_cast<void>(notifications_.flush(std::chrono::steady_clock::now()));
}

void ServiceManager::ready() {
  notifications_.tell("READY=1");
  if (watchdog_interval_) feed_watchdog();
}

void ServiceManager::status(std::string_view text) {
  if (text == status_) return;
  status_ = text;
  notifications_.status(text);
}

void ServiceManager::stopping() {
  watchdog_timer_.cancel();
  notifications_.tell("STOPPING=1");
}

/// From the reactor itself: a reactor that hangs stops feeding. Three times per interval, so that one late turn is no
/// restart.
void ServiceManager::feed_watchdog() {
  notifications_.watchdog();
  watchdog_timer_.expires_after(*watchdog_interval_ / 3);
  watchdog_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) feed_watchdog();
  });
}

void ServiceManager::send() {
  const auto again = notifications_.flush(std::chrono::steady_clock::now());
  retry_timer_.cancel();
  if (!again) return;
  retry_timer_.expires_at(*again);
  retry_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) send();
  });
}

}  // namespace evictd::host
