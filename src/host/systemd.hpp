#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace evictd::host {

/// Tells systemd how the service is (sd_notify(3)); does nothing when there is no systemd. On the reactor.
class ServiceManager {
 public:
  explicit ServiceManager(boost::asio::any_io_executor reactor);

  /// READY=1: the first pass has run. Begins to feed the watchdog, if systemd asked for that (WatchdogSec=).
  void ready();
  /// STATUS=: one line on the present state. Sent only when it changed.
  void status(std::string_view text);
  /// STOPPING=1
  void stopping();

 private:
  void feed_watchdog();

  boost::asio::steady_timer timer_;
  std::optional<std::chrono::microseconds> watchdog_interval_;
  std::string status_;
};

}  // namespace evictd::host
