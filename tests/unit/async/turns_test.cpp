#include "async/turns.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <ctime>
#include <optional>
#include <string_view>
#include <thread>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::async::turns_test {
namespace {

/// However long it takes where others want the processor, too.
void burn(core::Duration processor_time) {
  const auto used = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto end = used() + processor_time;
  while (used() < end) {
  }
}

}  // namespace

TEST_CASE("only turns of the reactor beyond the bound are kept, with what they were at and what they did") {
  Turns turns{500ms};
  asio::io_context reactor{1};
  asio::steady_timer wait{reactor, 700ms};  // waiting is no turn
  wait.async_wait([&](boost::system::error_code) {
    asio::post(reactor, [&] {
      Turns::doing("short work");
      std::this_thread::sleep_for(1ms);
    });
  });
  reactor.run();
  CHECK(turns.take().empty());

  reactor.restart();
  // The reactor waits once more behind the turn: that ends it.
  const auto wait_again = [&] {
    wait.expires_after(1ms);
    wait.async_wait([](boost::system::error_code) {});
  };
  asio::post(reactor, [&] {
    Turns::doing("a sleep");
    std::this_thread::sleep_for(700ms);
    wait_again();
  });
  reactor.run();
  auto found = turns.take();
  REQUIRE(found.size() == 1);
  CHECK(found[0].end - found[0].begin >= 700ms);
  CHECK(found[0].on_processor < 350ms);
  CHECK(std::string_view{found[0].doing} == "a sleep");
  CHECK(turns.take().empty());

  reactor.restart();
  asio::post(reactor, [&] {
    burn(700ms);
    wait_again();
  });
  reactor.run();
  found = turns.take();
  REQUIRE(found.size() == 1);
  CHECK(found[0].on_processor >= 700ms);
  CHECK(std::string_view{found[0].doing} == "no pass");
}

TEST_CASE("the most processor time of a turn is kept, however short it was, and waiting is none") {
  Turns turns{1h};
  asio::io_context reactor{1};
  const auto turn_of = [&](auto work) {
    asio::steady_timer next{reactor, 0ms};
    next.async_wait([&](boost::system::error_code) { work(); });
    reactor.restart();
    reactor.run();
  };
  turn_of([] { burn(20ms); });
  turn_of([] { burn(1ms); });
  turn_of([] { std::this_thread::sleep_for(300ms); });
  turn_of([] {});
  CHECK(turns.busiest() >= 20ms);
  CHECK(turns.busiest() < 250ms);
}

TEST_CASE("a turn that has not ended is seen from another thread") {
  Turns turns{50ms};
  asio::io_context reactor{1};
  std::optional<Turn> seen;
  asio::steady_timer wait{reactor, 1ms};
  wait.async_wait([&](boost::system::error_code) {
    std::this_thread::sleep_for(5ms);
    std::thread{[&] { seen = turns.under_way(); }}.join();
  });
  reactor.run();
  REQUIRE(seen.has_value());
  CHECK(seen->end - seen->begin >= 5ms);
}

TEST_CASE("of a storm of long turns no more are kept than are worth telling, and where none are measured none is") {
  {
    Turns turns{0ms};
    asio::io_context reactor{1};
    const asio::steady_timer has_it_look_at_the_kernel{reactor};
    for (int i = 0; i < 1000; ++i) {
      asio::post(reactor, [] {});
      reactor.poll();
      reactor.restart();
    }
    CHECK(turns.take().size() <= 16);
  }
  Turns::doing("nothing that is measured");
}

}  // namespace evictd::async::turns_test
