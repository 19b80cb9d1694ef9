#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <utility>

#include "cri/client.hpp"
#include "testbed/testbed.hpp"

namespace integration {

/// evictd's own client of a testbed's containerd, for tests of single parts of evictd.
struct Reactor {
  boost::asio::io_context context{1};
  evictd::cri::Client runtime;

  explicit Reactor(testbed::Testbed& bed) : runtime(context.get_executor(), bed.containerd().address()) {}

  /// Runs the coroutine to its end; every call it makes has a deadline.
  template <class T>
  T run(boost::asio::awaitable<T> coroutine) {
    return run(std::move(coroutine), [] {});
  }
  /// The same, with `meanwhile` called before each of its steps: it stands still until that returns.
  template <class T, class Meanwhile>
  T run(boost::asio::awaitable<T> coroutine, Meanwhile meanwhile) {
    std::optional<T> result;
    boost::asio::co_spawn(context, std::move(coroutine), [&](const std::exception_ptr& exception, T value) {
      if (exception) std::rethrow_exception(exception);
      result = std::move(value);
    });
    context.restart();
    do meanwhile();
    while (!result && context.run_one() > 0);
    return *std::move(result);
  }
};

}  // namespace integration
