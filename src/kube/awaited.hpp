#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/duration.hpp"

namespace evictd::kube {
namespace asio = boost::asio;

/// A value that somebody else makes, and that is waited for until a deadline. Who comes later with it is ignored: name
/// look-ups and disks cannot be interrupted, only abandoned. For the reactor's thread; shared by both sides.
template <class T>
class Awaited {
 public:
  Awaited(const asio::any_io_executor& reactor, core::Instant end) : timer_{reactor, end} {}

  void deliver(T value) {
    value_ = std::move(value);
    timer_.cancel();
  }
  /// Ends the wait without a value.
  void abandon() {
    abandoned_ = true;
    timer_.cancel();
  }

  static asio::awaitable<std::optional<T>> wait(std::shared_ptr<Awaited> self) {
    if (!self->value_ && !self->abandoned_) co_await self->timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    co_return std::move(self->value_);
  }

 private:
  asio::steady_timer timer_;
  std::optional<T> value_;
  bool abandoned_ = false;
};

/// Runs `work` on another executor and yields its result on this one; nothing if it does not come in time. The other
/// executor's threads must have ended before the reactor is destroyed.
template <class Work>
asio::awaitable<std::optional<std::invoke_result_t<Work>>> run_beside(asio::any_io_executor workers, Work work,
                                                                      core::Instant end) {
  using Value = std::invoke_result_t<Work>;
  const auto reactor = co_await asio::this_coro::executor;
  const auto awaited = std::make_shared<Awaited<Value>>(reactor, end);
  asio::post(workers, [awaited, reactor, work = std::move(work)]() mutable {
    auto value = work();
    asio::post(reactor, [awaited = std::move(awaited), value = std::move(value)]() mutable {
      awaited->deliver(std::move(value));
    });
  });
  co_return co_await Awaited<Value>::wait(awaited);
}

}  // namespace evictd::kube
