#include "async/sleep.hpp"

#include <doctest/doctest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace evictd::async::sleep_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct Waiter {
  asio::io_context reactor{1};
  std::unique_ptr<asio::steady_timer> timer = std::make_unique<asio::steady_timer>(reactor, 1h);
  asio::cancellation_signal cancel{};
  std::string told{};

  asio::awaitable<void> for_timer() {
    const bool is_time = co_await wait(*timer);
    told = is_time ? "it is time" : "cancelled";
    co_await sleep(0s);
    told += ", and goes on";
  }
  asio::awaitable<void> for_time() {
    const auto end = std::chrono::steady_clock::now() + 1h;
    co_await sleep(end);
    told = "awake";
    co_await sleep(0s);
    told += ", and goes on";
  }

  void begin(asio::awaitable<void> work) {
    asio::co_spawn(reactor, std::move(work),
                   asio::bind_cancellation_slot(cancel.slot(), [](const std::exception_ptr&) {}));
    reactor.poll();
  }
  void end() {
    reactor.restart();
    reactor.run_for(60s);
  }
};

}  // namespace

TEST_CASE("a wait tells whether the time came, and throws in neither case") {
  Waiter waiter;
  SUBCASE("it came") {
    waiter.timer->expires_after(1ms);
    waiter.begin(waiter.for_timer());
    waiter.end();
    CHECK(waiter.told == "it is time, and goes on");
  }
  SUBCASE("the timer was cancelled") {
    waiter.begin(waiter.for_timer());
    waiter.timer->cancel();
    waiter.end();
    CHECK(waiter.told == "cancelled, and goes on");
  }
  SUBCASE("the timer went") {
    waiter.begin(waiter.for_timer());
    waiter.timer.reset();
    waiter.end();
    CHECK(waiter.told == "cancelled, and goes on");
  }
}

TEST_CASE("a coroutine that is cancelled in a wait comes back from it, and no further than to the next one") {
  Waiter waiter;
  std::string told;
  SUBCASE("for a timer") {
    waiter.begin(waiter.for_timer());
    told = "cancelled";
  }
  SUBCASE("for a time") {
    waiter.begin(waiter.for_time());
    told = "awake";
  }
  waiter.cancel.emit(asio::cancellation_type::terminal);
  waiter.end();
  CHECK(waiter.told == told);
}

}  // namespace evictd::async::sleep_test
