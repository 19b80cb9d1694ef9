#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <map>
#include <memory>

#include "agent/clock.hpp"

namespace evictd::agent {

/// A clock that stands still until the test moves it on.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(boost::asio::io_context& reactor) : reactor_{reactor} {}

  [[nodiscard]] core::Instant now() const override { return now_; }
  [[nodiscard]] boost::asio::awaitable<void> sleep(core::Duration duration) override {
    auto timer = std::make_shared<boost::asio::steady_timer>(reactor_, core::Instant::max());
    sleepers_.emplace(now_ + duration, timer);
    co_await timer->async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }

  /// Runs what is ready, without any time passing.
  void settle() {
    reactor_.restart();
    reactor_.poll();
  }
  /// Lets so much time pass: whoever sleeps wakes at its own time, in order.
  void advance(core::Duration duration) {
    const auto until = now_ + duration;
    settle();
    while (!sleepers_.empty() && sleepers_.begin()->first <= until) {
      now_ = sleepers_.begin()->first;
      sleepers_.extract(sleepers_.begin()).mapped()->cancel();
      settle();
    }
    now_ = until;
  }

 private:
  boost::asio::io_context& reactor_;
  core::Instant now_{std::chrono::hours(1)};
  std::multimap<core::Instant, std::shared_ptr<boost::asio::steady_timer>> sleepers_;
};

}  // namespace evictd::agent
