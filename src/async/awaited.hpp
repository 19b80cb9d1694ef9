#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "async/sleep.hpp"
#include "core/duration.hpp"

namespace evictd::async {

/// A value that another part makes, and that is waited for until a deadline. A value that comes later is dropped: name
/// look-ups and disks cannot be interrupted, only abandoned. For the reactor's thread; shared by both sides.
template <class T>
class Awaited {
 public:
  Awaited(const boost::asio::any_io_executor& reactor, core::Instant end) : timer_{reactor, end} {}

  void deliver(T value) {
    value_ = std::move(value);
    timer_.cancel();
  }
  /// Ends the wait without a value.
  void abandon() {
    abandoned_ = true;
    timer_.cancel();
  }

  static boost::asio::awaitable<std::optional<T>> wait(std::shared_ptr<Awaited> self) {
    namespace asio = boost::asio;
    if (!self->value_ && !self->abandoned_) co_await async::wait(self->timer_);
    co_return std::move(self->value_);
  }

 private:
  boost::asio::steady_timer timer_;
  std::optional<T> value_;
  bool abandoned_ = false;
};

}  // namespace evictd::async
