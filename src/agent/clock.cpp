#include "agent/clock.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace asio = boost::asio;

namespace evictd::agent {

core::Instant SteadyClock::now() const { return std::chrono::steady_clock::now(); }

asio::awaitable<void> SteadyClock::sleep(core::Duration duration) {
  asio::steady_timer timer{co_await asio::this_coro::executor, duration};
  co_await timer.async_wait(asio::use_awaitable);
}

}  // namespace evictd::agent
