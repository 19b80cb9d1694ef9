#include "async/offload.hpp"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <exception>
#include <future>
#include <stdexcept>
#include <string>

#include "fixture/patience.hpp"

namespace asio = boost::asio;

namespace evictd::async::offload_test {

TEST_CASE("a result is there once its work is done, whatever was given to the same thread behind it") {
  asio::thread_pool pool{1};
  asio::io_context reactor{1};
  std::promise<void> both_given;
  std::promise<void> heard;
  bool in_time = false;
  const auto first = [&]() -> asio::awaitable<void> {
    const auto value = co_await offload(pool.get_executor(), [given = both_given.get_future()] {
      given.wait();
      return 7;
    });
    CHECK(value == 7);
    heard.set_value();
  };
  asio::co_spawn(reactor, first(), [](const std::exception_ptr& thrown) { CHECK_FALSE(thrown); });
  while (reactor.poll_one() > 0) {
  }
  asio::post(pool, [&] { in_time = heard.get_future().wait_for(test::patience) == std::future_status::ready; });
  both_given.set_value();
  reactor.run();
  pool.join();
  CHECK(in_time);
}

TEST_CASE("what the work throws is thrown where its result is waited for") {
  asio::thread_pool pool{1};
  asio::io_context reactor{1};
  std::string said;
  const auto ask = [&]() -> asio::awaitable<void> {
    try {
      static_cast<void>(co_await offload(pool.get_executor(), []() -> int { throw std::runtime_error("no memory"); }));
    } catch (const std::runtime_error& error) {
      said = error.what();
    }
  };
  asio::co_spawn(reactor, ask(), [](const std::exception_ptr& thrown) { CHECK_FALSE(thrown); });
  reactor.run();
  CHECK(said == "no memory");
}

}  // namespace evictd::async::offload_test
