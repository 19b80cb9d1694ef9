#include "evict/join.hpp"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <stdexcept>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

struct Joined {
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
      co_await evictd::evict::join(std::move(operations));
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

TEST_CASE("join waits for the slowest of operations that run side by side") {
  Joined joined;
  std::vector<asio::awaitable<void>> operations;
  operations.push_back(joined.wait(1, 60ms));
  operations.push_back(joined.wait(2, 1ms));
  operations.push_back(joined.wait(3, 0ms));
  joined.run(std::move(operations));
  CHECK(joined.done);
  CHECK(joined.ended == std::vector{3, 2, 1});
}

TEST_CASE("joining nothing is done at once") {
  Joined joined;
  joined.run({});
  CHECK(joined.done);
}

TEST_CASE("what an operation throws comes out of join, once all have ended") {
  Joined joined;
  std::vector<asio::awaitable<void>> operations;
  operations.push_back(joined.fail("first"));
  operations.push_back(joined.fail("second"));
  operations.push_back(joined.wait(3, 50ms));
  joined.run(std::move(operations));
  CHECK(joined.done);
  CHECK(joined.thrown == "first");
  CHECK(joined.ended == std::vector{0, 0, 3});
}
