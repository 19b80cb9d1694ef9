#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>
#include <vector>

namespace evictd::cri {

/// Runs all of them at once on the caller's executor and yields their results in the same order when the last one is
/// done. Cancelling the caller cancels each of them.
template <class T>
boost::asio::awaitable<std::vector<T>> side_by_side(std::vector<boost::asio::awaitable<T>> awaitables) {
  namespace asio = boost::asio;
  if (awaitables.empty()) co_return std::vector<T>{};

  const auto executor = co_await asio::this_coro::executor;
  const auto prepare = [&](asio::awaitable<T> awaitable) {
    return asio::co_spawn(executor, std::move(awaitable), asio::deferred);
  };
  std::vector<decltype(prepare(std::move(awaitables.front())))> operations;
  operations.reserve(awaitables.size());
  for (auto& awaitable : awaitables) operations.push_back(prepare(std::move(awaitable)));

  auto [order, exceptions, results] = co_await asio::experimental::make_parallel_group(std::move(operations))
                                          .async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
  for (const auto& exception : exceptions)
    if (exception) std::rethrow_exception(exception);
  co_return std::move(results);
}

}  // namespace evictd::cri
