#include "async/wait_all.hpp"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace evictd::async::wait_all_test {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

struct Waiting {
  asio::io_context reactor{1};
  std::vector<int> ended;
  bool done = false;
  std::string thrown{};

  asio::awaitable<void> wait(int id, std::chrono::milliseconds time) {
    asio::steady_timer timer{reactor, time};
    if (time > 0ms) co_await timer.async_wait(asio::use_awaitable);
    ended.push_back(id);
  }
  asio::awaitable<void> fail(std::string what) {
    co_await wait(0, std::chrono::milliseconds{1});
    throw std::runtime_error(what);
  }
  asio::awaitable<void> all(std::vector<asio::awaitable<void>> operations) {
    try {
      co_await evictd::async::wait_all(std::move(operations));
    } catch (const std::exception& error) {
      thrown = error.what();
    }
    done = true;
  }
  void run(std::vector<asio::awaitable<void>> operations) {
    asio::co_spawn(reactor, all(std::move(operations)), asio::detached);
    reactor.run_for(10s);
  }
};

}  // namespace

TEST_CASE("wait_all waits for the slowest of operations that run side by side") {
  Waiting waiting;
  std::vector<asio::awaitable<void>> operations;
  operations.push_back(waiting.wait(1, 60ms));
  operations.push_back(waiting.wait(2, 1ms));
  operations.push_back(waiting.wait(3, 0ms));
  waiting.run(std::move(operations));
  CHECK(waiting.done);
  CHECK(waiting.ended == std::vector{3, 2, 1});
}

TEST_CASE("nothing to wait for is done at once") {
  Waiting waiting;
  waiting.run({});
  CHECK(waiting.done);
}

TEST_CASE("what an operation throws comes out of wait_all, once all have ended") {
  Waiting waiting;
  std::vector<asio::awaitable<void>> operations;
  operations.push_back(waiting.fail("first"));
  operations.push_back(waiting.fail("second"));
  operations.push_back(waiting.wait(3, 50ms));
  waiting.run(std::move(operations));
  CHECK(waiting.done);
  CHECK(waiting.thrown == "first");
  CHECK(waiting.ended == std::vector{0, 0, 3});
}

TEST_CASE("results come in the order of the operations, whichever ends first") {
  asio::io_context reactor{1};
  const auto after = [&reactor](std::chrono::milliseconds time, std::string value) -> asio::awaitable<std::string> {
    asio::steady_timer timer{reactor, time};
    co_await timer.async_wait(asio::use_awaitable);
    co_return value;
  };
  std::vector<std::string> results{"none yet"};
  const auto ask = [&](std::vector<asio::awaitable<std::string>> operations) -> asio::awaitable<void> {
    results = co_await evictd::async::wait_all(std::move(operations));
  };
  SUBCASE("two") {
    std::vector<asio::awaitable<std::string>> operations;
    operations.push_back(after(20ms, "slow"));
    operations.push_back(after(1ms, "quick"));
    asio::co_spawn(reactor, ask(std::move(operations)), asio::detached);
    reactor.run_for(10s);
    CHECK(results == std::vector<std::string>{"slow", "quick"});
  }
  SUBCASE("none") {
    asio::co_spawn(reactor, ask({}), asio::detached);
    reactor.run_for(10s);
    CHECK(results.empty());
  }
}

}  // namespace evictd::async::wait_all_test
