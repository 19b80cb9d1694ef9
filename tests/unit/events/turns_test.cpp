#include "events/turns.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <string>
#include <vector>

#include "async/spawn.hpp"
#include "cri/run.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::events::turns_test {
namespace {

using Order = std::vector<std::string>;

void spend(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

asio::awaitable<void> take_turns(Turns& turns, Order& order, std::string name, int count) {
  for (int i = 0; i < count; ++i) {
    const bool has_turn = co_await turns.turn();
    if (!has_turn) break;
    order.push_back(name);
  }
  order.push_back(name + " is over");
}

asio::awaitable<void> wait_for(Turns& turns, Order& order, std::string name, std::shared_ptr<Turns::Bell> bell) {
  const bool has_turn = co_await turns.turn(bell);
  order.push_back(has_turn ? name : name + " is over");
}

struct Fixture {
  std::shared_ptr<Turns::Taker> taker(std::function<void()> take) {
    return std::make_shared<Turns::Taker>(std::move(take));
  }
  /// All that was posted, and what comes of it.
  void run() {
    reactor.restart();
    reactor.run();
  }

  asio::io_context reactor{1};
  std::shared_ptr<Turns> turns = std::make_shared<Turns>(reactor.get_executor(), 1ms);
};

TEST_CASE("turns are taken after the current handler, in their order, once for each time they were asked for") {
  Fixture f;
  Order order;
  const auto a = f.taker([&] { order.emplace_back("a"); });
  const auto b = f.taker([&] { order.emplace_back("b"); });
  f.turns->queue(b);
  f.turns->queue(a);
  f.turns->queue(b);
  CHECK(order.empty());
  f.run();
  CHECK(order == Order{"b", "a"});
  f.turns->queue(a);
  f.run();
  CHECK(order == Order{"b", "a", "a"});
}

TEST_CASE("whatever else is ready comes once a slice is used up") {
  Fixture f;
  Order order;
  const auto slow = [&](const char* name) {
    return f.taker([&order, name] {
      order.emplace_back(name);
      spend(2ms);
    });
  };
  const std::vector takers{slow("first"), slow("second")};
  for (const auto& taker : takers) f.turns->queue(taker);
  asio::post(f.reactor, [&] { order.emplace_back("work"); });
  f.run();
  CHECK(order == Order{"first", "work", "second"});
}

TEST_CASE("one that never has enough leaves the reactor to others") {
  Fixture f;
  int taken = 0;
  int worked = 0;
  std::shared_ptr<Turns::Taker> greedy;
  greedy = f.taker([&] {
    ++taken;
    spend(100us);
    if (worked < 20) f.turns->queue(greedy);
  });
  f.turns->queue(greedy);
  const std::function<void()> work = [&] {
    if (++worked < 20) asio::post(f.reactor, work);
  };
  asio::post(f.reactor, work);
  f.run();
  CHECK(worked == 20);
  CHECK(taken > 0);
}

TEST_CASE("those that wait get their turn after an announcement, and one that is announced meanwhile is not lost") {
  Fixture f;
  Order order;
  std::shared_ptr<Turns::Taker> a;
  a = f.taker([&] {
    order.emplace_back("a");
    if (order.size() == 1) {
      f.turns->wait(a);
      f.turns->announce();
    }
  });
  f.turns->wait(a);
  f.turns->wait(a);
  f.run();
  CHECK(order.empty());
  f.turns->announce();
  f.run();
  CHECK(order == Order{"a", "a"});
  f.turns->announce();
  f.run();
  CHECK(order == Order{"a", "a"});
}

TEST_CASE("who is gone gets no turn, also if it goes in the turn of another, or in its own") {
  Fixture f;
  Order order;
  auto second = f.taker([&] { order.emplace_back("second"); });
  std::shared_ptr<Turns::Taker> first;
  first = f.taker([&] {
    order.emplace_back("first");
    second.reset();
    first.reset();
  });
  f.turns->queue(first);
  f.turns->queue(second);
  f.run();
  CHECK(order == Order{"first"});
}

TEST_CASE("those that come and go on a quiet node do not pile up") {
  Fixture f;
  const auto stays = f.taker([] {});
  f.turns->wait(stays);
  for (int i = 0; i < 1000; ++i) {
    auto goes = f.taker([] {});
    f.turns->wait(goes);
    goes.reset();
    f.turns->forget_one();
  }
  CHECK(f.turns->waiting() <= 3);
}

TEST_CASE("after a stop nobody gets a turn") {
  Fixture f;
  Order order;
  const auto a = f.taker([&] { order.emplace_back("a"); });
  f.turns->queue(a);
  f.turns->stop();
  f.run();
  CHECK(order.empty());
}

TEST_CASE("a coroutine goes on within its turn, and has the next one after the others") {
  Fixture f;
  Order order;
  async::spawn(f.reactor.get_executor(), take_turns(*f.turns, order, "a", 2), "a");
  async::spawn(f.reactor.get_executor(), take_turns(*f.turns, order, "b", 1), "b");
  f.run();
  CHECK(fmt::format("{}", fmt::join(order, ", ")) == "a, b, b is over, a, a is over");
}

TEST_CASE("a stop ends the coroutines that wait for a turn at once, and those that would wait") {
  Fixture f;
  Order order;
  async::spawn(f.reactor.get_executor(), take_turns(*f.turns, order, "a", 2), "a");
  f.reactor.run_one();
  f.turns->stop();
  CHECK(order == Order{"a is over"});
  async::spawn(f.reactor.get_executor(), take_turns(*f.turns, order, "b", 2), "b");
  f.run();
  CHECK(order == Order{"a is over", "b is over"});
}

TEST_CASE("a coroutine that waits for a bell has its turn once that was rung, also before, and only once") {
  Fixture f;
  Order order;
  const auto early = std::make_shared<Turns::Bell>();
  const auto late = std::make_shared<Turns::Bell>();
  early->ring();
  async::spawn(f.reactor.get_executor(), wait_for(*f.turns, order, "late", late), "late");
  async::spawn(f.reactor.get_executor(), wait_for(*f.turns, order, "early", early), "early");
  REQUIRE(test::run_until(f.reactor, [&] { return !order.empty(); }));
  CHECK(order == Order{"early"});
  late->ring();
  late->ring();
  early->ring();
  f.run();
  CHECK(order == Order{"early", "late"});
}

TEST_CASE("a stop ends those that wait for a bell, and what rings then finds nobody") {
  Fixture f;
  Order order;
  const auto bell = std::make_shared<Turns::Bell>();
  async::spawn(f.reactor.get_executor(), wait_for(*f.turns, order, "a", bell), "a");
  f.reactor.poll();
  CHECK(order.empty());
  f.turns->stop();
  CHECK(order == Order{"a is over"});
  bell->ring();
  f.turns.reset();
  bell->ring();
  f.run();
  CHECK(order == Order{"a is over"});
}

}  // namespace
}  // namespace evictd::events::turns_test
