#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "host/notifications.hpp"

namespace evictd::host {

/// Tells systemd how the service is (sd_notify(3)); does nothing when there is no systemd. On the reactor, which it
/// never makes wait for PID 1 (host/notifications.hpp). It also sends what host/descriptor_store.hpp is given.
class ServiceManager final : private Notifications::Listener {
 public:
  explicit ServiceManager(boost::asio::any_io_executor reactor)
      : ServiceManager{std::move(reactor), host::notifications()} {}
  ServiceManager(boost::asio::any_io_executor reactor, Notifications& notifications);
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;
  /// What could not be sent so far is tried once more.
  ~ServiceManager();

  /// READY=1: the first pass has run. Begins to feed the watchdog, if systemd asked for that (WatchdogSec=).
  void ready();
  /// STATUS=: one line on the present state. Sent only when it changed, and at most once a second: the newest counts.
  void status(std::string_view text);
  /// STOPPING=1
  void stopping();

 private:
  void feed_watchdog();
  void notifications_added() override { send(); }
  void send();

  Notifications& notifications_;
  boost::asio::steady_timer watchdog_timer_;
  boost::asio::steady_timer retry_timer_;
  std::optional<std::chrono::microseconds> watchdog_interval_;
  std::string status_;
};

}  // namespace evictd::host
