#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

namespace evictd::async {

/// Runs both at once on the caller's executor until one of them ends, cancels the other and waits for its end. Yields
/// whether it was the work that ended first, and throws what that one of them threw; what the cancelled one throws is
/// dropped. Cancelling the caller cancels both.
inline boost::asio::awaitable<bool> run_until_either(boost::asio::awaitable<void> work,
                                                     boost::asio::awaitable<void> limit) {
  namespace asio = boost::asio;
  const auto executor = co_await asio::this_coro::executor;
  auto group = asio::experimental::make_parallel_group(asio::co_spawn(executor, std::move(work), asio::deferred),
                                                       asio::co_spawn(executor, std::move(limit), asio::deferred));
  const auto [order, of_work, of_limit] =
      co_await group.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  const bool is_work = order[0] == 0;
  const auto thrown = is_work ? of_work : of_limit;
  if (thrown) std::rethrow_exception(thrown);
  co_return is_work;
}

}  // namespace evictd::async
