#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

namespace evictd::async {

/// Runs all operations at once on the caller's executor and waits for all of them, also where one throws; then it
/// throws what the first of those threw. Yields their results, in the order of the operations, if they have any.
/// Cancelling the caller cancels each of them.
template <class T>
auto wait_all(std::vector<boost::asio::awaitable<T>> operations)
    -> boost::asio::awaitable<std::conditional_t<std::is_void_v<T>, void, std::vector<T>>> {
  namespace asio = boost::asio;
  const auto executor = co_await asio::this_coro::executor;
  const auto prepare = [&executor](asio::awaitable<T> operation) {
    return asio::co_spawn(executor, std::move(operation), asio::deferred);
  };
  std::vector<decltype(prepare(std::move(operations.front())))> prepared;
  prepared.reserve(operations.size());
  for (auto& operation : operations) prepared.push_back(prepare(std::move(operation)));
  const auto throw_first = [](const std::vector<std::size_t>& order, const std::vector<std::exception_ptr>& thrown) {
    for (const auto place : order)
      if (thrown[place]) std::rethrow_exception(thrown[place]);
  };

  // A group of none would never end.
  if constexpr (std::is_void_v<T>) {
    if (prepared.empty()) co_return;
    auto group = asio::experimental::make_parallel_group(std::move(prepared));
    const auto [order, thrown] = co_await group.async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
    throw_first(order, thrown);
  } else {
    if (prepared.empty()) co_return std::vector<T>{};
    auto group = asio::experimental::make_parallel_group(std::move(prepared));
    auto [order, thrown, results] = co_await group.async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
    throw_first(order, thrown);
    co_return std::move(results);
  }
}

}  // namespace evictd::async
