#include "async/run_until_either.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

namespace evictd::async::run_until_either_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct Running {
  asio::io_context reactor{1};
  int ended = 0;
  std::string outcome{};

  asio::awaitable<void> wait(std::chrono::milliseconds time) {
    asio::steady_timer timer{reactor, time};
    if (time > 0ms) co_await timer.async_wait(asio::use_awaitable);
    ++ended;
  }
  asio::awaitable<void> fail(std::string what, std::chrono::milliseconds time) {
    co_await wait(time);
    throw std::runtime_error(what);
  }
  asio::awaitable<void> either(asio::awaitable<void> work, asio::awaitable<void> limit) {
    try {
      const bool first = co_await run_until_either(std::move(work), std::move(limit));
      outcome = first ? "work" : "limit";
    } catch (const std::exception& error) {
      outcome = error.what();
    }
  }
  std::string run(asio::awaitable<void> work, asio::awaitable<void> limit) {
    asio::co_spawn(reactor, either(std::move(work), std::move(limit)), [](const std::exception_ptr&) {});
    reactor.run_for(60s);
    return outcome;
  }
};

}  // namespace

TEST_CASE("the first to end has the other cancelled") {
  Running running;
  SUBCASE("the work") { CHECK(running.run(running.wait(1ms), running.wait(3'600'000ms)) == "work"); }
  SUBCASE("the work, at once") { CHECK(running.run(running.wait(0ms), running.wait(3'600'000ms)) == "work"); }
  SUBCASE("the limit") { CHECK(running.run(running.wait(3'600'000ms), running.wait(1ms)) == "limit"); }
  CHECK(running.ended == 1);
}

TEST_CASE("what the first one throws is thrown, and nothing of the other") {
  Running running;
  SUBCASE("the work") { CHECK(running.run(running.fail("no", 1ms), running.wait(3'600'000ms)) == "no"); }
  SUBCASE("the limit") { CHECK(running.run(running.wait(3'600'000ms), running.fail("no", 1ms)) == "no"); }
  SUBCASE("the other") { CHECK(running.run(running.fail("no", 3'600'000ms), running.wait(1ms)) == "limit"); }
}

}  // namespace evictd::async::run_until_either_test
