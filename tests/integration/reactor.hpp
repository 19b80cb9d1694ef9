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
    std::optional<T> result;
    boost::asio::co_spawn(context, std::move(coroutine), [&](const std::exception_ptr& exception, T value) {
      if (exception) std::rethrow_exception(exception);
      result = std::move(value);
    });
    context.restart();
    context.run();
    return *std::move(result);
  }
};

}  // namespace integration
