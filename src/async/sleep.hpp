#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "core/duration.hpp"

namespace evictd::async {

/// Until the timer is over (true), or somebody cancels it or the coroutine (false). A cancelled wait does not throw;
/// what a cancelled coroutine awaits next does. The timer may be destroyed meanwhile, which cancels it. On the timer's
/// thread.
inline boost::asio::awaitable<bool> wait(boost::asio::steady_timer& timer) {
  const auto [cancelled] = co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  co_return !cancelled;
}

/// Until then, or until the coroutine is cancelled, likewise without throwing. On the coroutine's own executor.
inline boost::asio::awaitable<void> sleep(core::Instant end) {
  const auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer timer{executor, end};
  co_await wait(timer);
}

inline boost::asio::awaitable<void> sleep(core::Duration duration) {
  const auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer timer{executor, duration};
  co_await wait(timer);
}

}  // namespace evictd::async
