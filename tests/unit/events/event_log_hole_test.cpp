#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <string>
#include <utility>
#include <vector>

#include "events/event_log.hpp"
#include "events/kept_log.hpp"
#include "events/stored_events.hpp"

namespace evictd::events::event_log_hole_test {
namespace {

/// A log after an agent that had reserved numbers and was killed: they are a hole behind its events.
struct Continued {
  Continued(std::uint64_t events, std::uint64_t last, EventLogLimits limits = {})
      : log{reactor.get_executor(), limits, {.events = test::numbered_from(1, events), .last = last}} {}

  void append(int count) {
    for (int i = 0; i < count; ++i) log.append({});
  }

  boost::asio::io_context reactor{1};
  EventLog log;
};

}  // namespace

TEST_CASE("numbers that no event had are not missed by a subscriber that falls behind them") {
  Continued c{3, 1000, {.history = 3}};
  const auto slow = c.log.subscribe(0, [] {});
  CHECK(slow->next()->sequence() == 1);
  c.append(4);
  CHECK(slow->next()->gap().to() == 1001);
  CHECK(c.log.missed() == 3);  // 2, 3 and 1001
  CHECK(slow->next()->sequence() == 1002);
  c.append(5);
  CHECK(slow->next()->gap().to() == 1006);
  CHECK(c.log.missed() == 7);
}

TEST_CASE("the last events are counted, not their numbers, and only those that may be told") {
  Continued c{3, 1000};
  c.append(2);
  CHECK(c.log.kept() == 5);
  CHECK(c.log.before_last(0) == 1002);
  CHECK(c.log.before_last(1) == 1001);
  CHECK(c.log.before_last(2) == 3);
  CHECK(c.log.before_last(3) == 2);
  for (const std::size_t all : {5, 6, 1000}) CHECK(c.log.before_last(all) == 0);

  EventLog held_back{
      c.reactor.get_executor(), {.history = 3}, {.events = test::numbered_from(8, 9), .last = 9, .reserved = 10}};
  for (int i = 0; i < 2; ++i) held_back.append({});
  CHECK(held_back.kept() == 2);  // 9 and 10
  CHECK(held_back.before_last(1) == 9);
  CHECK(held_back.before_last(2) == 8);
  CHECK(test::read_after(held_back, held_back.before_last(2)) == std::vector<std::string>{"9", "10"});
}

TEST_CASE("a log of which nothing may be told has no last events") {
  const Continued none{0, 10};
  CHECK(none.log.kept() == 0);
  CHECK(none.log.before_last(0) == 10);
  CHECK(none.log.before_last(5) == 10);
}

TEST_CASE("a hole that is read is nothing missed") {
  Continued c{3, 1000};
  c.append(1);
  const auto subscription = c.log.subscribe(0, [] {});
  while (subscription->next()) {
  }
  CHECK(subscription->position() == 1001);
  CHECK(c.log.missed() == 0);
}

}  // namespace evictd::events::event_log_hole_test
