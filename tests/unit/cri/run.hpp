#pragma once
#include <doctest/doctest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "fixture/patience.hpp"

namespace evictd::test {

/// Runs the reactor until `done()` holds; false if it does not in time.
template <class Done>
bool run_until(boost::asio::io_context& reactor, Done done) {
  const auto end = std::chrono::steady_clock::now() + patience;
  reactor.restart();
  while (!done() && std::chrono::steady_clock::now() < end) {
    if (reactor.stopped()) reactor.restart();
    reactor.run_one_for(std::chrono::milliseconds{20});
  }
  return done();
}

/// Runs the reactor until the coroutine has its result.
template <class T>
T run(boost::asio::io_context& reactor, boost::asio::awaitable<T> coroutine) {
  std::optional<T> result;
  boost::asio::co_spawn(reactor, std::move(coroutine), [&](const std::exception_ptr& exception, T value) {
    if (exception) std::rethrow_exception(exception);
    result = std::move(value);
  });
  REQUIRE(run_until(reactor, [&] { return result.has_value(); }));
  return *std::move(result);
}

}  // namespace evictd::test
