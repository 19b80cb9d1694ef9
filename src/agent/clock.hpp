#pragma once
#include <boost/asio/awaitable.hpp>

#include "core/duration.hpp"

namespace evictd::agent {

/// The time, and waiting for it: the loop and what it starts have no other, so that tests simulate it. On the reactor.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// Never goes back.
  [[nodiscard]] virtual core::Instant now() const = 0;
  /// Returns once so much time has passed.
  [[nodiscard]] virtual boost::asio::awaitable<void> sleep(core::Duration duration) = 0;
};

/// The kernel's monotonic clock.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] core::Instant now() const override;
  [[nodiscard]] boost::asio::awaitable<void> sleep(core::Duration duration) override;
};

}  // namespace evictd::agent
