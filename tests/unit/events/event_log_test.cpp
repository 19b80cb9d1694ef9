#include "events/event_log.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "evictd.pb.h"

namespace asio = boost::asio;

namespace evictd::events::event_log_test {
namespace {

v1::Event event(v1::Event::Kind kind = v1::Event::RECOVERED) {
  v1::Event result;
  result.set_kind(kind);
  return result;
}

/// A log whose reactor turns only when the test says so.
struct Fixture {
  explicit Fixture(EventLogLimits limits = {}, EarlierEvents earlier = {})
      : log(reactor.get_executor(), limits, std::move(earlier)) {}

  void append(int count) {
    for (int i = 0; i < count; ++i) log.append(event());
  }

  /// Runs what was posted.
  void turn() {
    reactor.restart();
    reactor.poll();
  }

  asio::io_context reactor{1};
  EventLog log;
};

/// What a subscription still has to say: "3", or "1-2" for a gap.
std::vector<std::string> read_all(Subscription& subscription) {
  std::vector<std::string> result;
  while (const auto next = subscription.next())
    result.push_back(next->kind() == v1::Event::GAP
                         ? std::to_string(next->gap().from()) + "-" + std::to_string(next->gap().to())
                         : std::to_string(next->sequence()));
  return result;
}

using Read = std::vector<std::string>;

/// Does what the test has it do with each event.
template <class Work>
class Listener final : public EventListener {
 public:
  explicit Listener(Work work) : work_{std::move(work)} {}
  void appended(const EventPtr& event) override { work_(event); }

 private:
  Work work_;
};

/// Saves as the test has it save.
template <class Work>
class Saver final : public SavesEvents {
 public:
  explicit Saver(Work work) : work_{std::move(work)} {}
  void save_events() override { work_(); }

 private:
  Work work_;
};

TEST_CASE("events are numbered from 1 without a hole") {
  Fixture f;
  CHECK(f.log.last_sequence() == 0);
  CHECK(f.log.first_sequence() == 1);
  for (std::uint64_t number = 1; number <= 100; ++number) CHECK(f.log.append(event()).sequence() == number);
  CHECK(f.log.last_sequence() == 100);
}

TEST_CASE("the observer hears of every event at once, with its number, however slow the subscribers are") {
  Fixture f{{.history = 2}};
  std::vector<std::uint64_t> heard;
  Listener listener{[&](const EventPtr& appended) {
    heard.push_back(appended->sequence());
    CHECK(appended->has_time());
  }};
  f.log.observe(&listener);
  f.append(5);
  CHECK(heard == std::vector<std::uint64_t>{1, 2, 3, 4, 5});
  f.log.observe(nullptr);
  f.append(1);
  CHECK(heard.size() == 5);
}

TEST_CASE("an event is given both times unless it has them") {
  Fixture f;
  const auto before = std::chrono::steady_clock::now().time_since_epoch();
  const auto wall_before = std::chrono::system_clock::now().time_since_epoch();
  const auto& stamped = f.log.append(event());
  CHECK(stamped.monotonic_ns() >= std::chrono::nanoseconds(before).count());
  CHECK(stamped.monotonic_ns() <=
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  CHECK(stamped.time().seconds() >= std::chrono::floor<std::chrono::seconds>(wall_before).count());

  auto own = event();
  own.set_monotonic_ns(7);
  own.mutable_time()->set_seconds(9);
  const auto& kept = f.log.append(own);
  CHECK(kept.monotonic_ns() == 7);
  CHECK(kept.time().seconds() == 9);
}

TEST_CASE("an intended eviction is its own eviction id, others keep theirs") {
  Fixture f;
  f.append(2);
  CHECK(f.log.append(event(v1::Event::EVICTION_INTENDED)).eviction_id() == 3);
  auto killed = event(v1::Event::CONTAINERS_KILLED);
  killed.set_eviction_id(3);
  CHECK(f.log.append(killed).eviction_id() == 3);
}

TEST_CASE("the history holds the newest events only") {
  Fixture f({.history = 3});
  f.append(10);
  CHECK(f.log.first_sequence() == 8);
  CHECK(f.log.last_sequence() == 10);
}

TEST_CASE("a subscriber resumes after the number it saw last, and follows without a hole or a repeat") {
  Fixture f;
  f.append(5);
  const auto subscription = f.log.subscribe(2, [] {});
  CHECK(subscription->next()->sequence() == 3);
  f.append(2);
  CHECK(read_all(*subscription) == Read{"4", "5", "6", "7"});
}

TEST_CASE("a subscriber that asks for numbers no longer kept reads a gap first") {
  Fixture f({.history = 3});
  f.append(10);
  CHECK(read_all(*f.log.subscribe(0, [] {})) == Read{"1-7", "8", "9", "10"});
  CHECK(read_all(*f.log.subscribe(5, [] {})) == Read{"6-7", "8", "9", "10"});
  CHECK(read_all(*f.log.subscribe(7, [] {})) == Read{"8", "9", "10"});
  CHECK(read_all(*f.log.subscribe(10, [] {})).empty());
}

TEST_CASE("a gap carries the last number it stands for, so that numbers rise and can be resumed from") {
  Fixture f({.history = 2});
  f.append(5);
  const auto gap = f.log.subscribe(0, [] {})->next();
  REQUIRE(gap->kind() == v1::Event::GAP);
  CHECK(gap->sequence() == 3);
  CHECK(gap->message() == "events 1 to 3 were missed: they are no longer kept");
  CHECK(gap->has_time());
  CHECK(f.log.subscribe(2, [] {})->next()->message() == "event 3 was missed: it is no longer kept");
}

TEST_CASE("a subscriber that falls behind by more than its queue misses the oldest and is told which") {
  Fixture f({.history = 100, .subscriber_queue = 4});
  const auto slow = f.log.subscribe(0, [] {});
  f.append(1);
  CHECK(read_all(*slow) == Read{"1"});
  f.append(4);
  CHECK(slow->next()->sequence() == 2);
  f.append(5);
  CHECK(read_all(*slow) == Read{"3-6", "7", "8", "9", "10"});
  CHECK(f.log.missed() == 4);
  f.append(1);
  CHECK(read_all(*slow) == Read{"11"});
}

TEST_CASE("whoever replays the history gets all of it, however long its queue is") {
  Fixture f({.history = 100, .subscriber_queue = 2});
  f.append(6);
  CHECK(read_all(*f.log.subscribe(0, [] {})) == Read{"1", "2", "3", "4", "5", "6"});
}

TEST_CASE("subscribers are told after the handler that appended, once, and only when they had read everything") {
  Fixture f;
  int told = 0;
  const auto subscription = f.log.subscribe(0, [&] { ++told; });
  f.append(1);
  f.turn();
  CHECK(told == 0);  // it never read: it knows that it has to

  CHECK(read_all(*subscription) == Read{"1"});
  CHECK(subscription->next() == nullptr);
  f.append(3);
  CHECK(told == 0);
  f.turn();
  CHECK(told == 1);
  f.append(1);
  f.turn();
  CHECK(told == 1);
  CHECK(read_all(*subscription) == Read{"2", "3", "4", "5"});
}

TEST_CASE("an event that is appended while subscribers are being told reaches all of them") {
  Fixture f;
  std::vector<std::unique_ptr<Subscription>> subscriptions(3);
  std::vector<int> seen(3);
  for (std::size_t i = 0; i < subscriptions.size(); ++i) {
    subscriptions[i] = f.log.subscribe(0, [&, i] {
      if (seen[0] + seen[1] + seen[2] == 0) f.log.append(event());  // during the first round
      while (subscriptions[i]->next()) ++seen[i];
    });
    CHECK(subscriptions[i]->next() == nullptr);
  }
  f.append(1);
  f.turn();
  CHECK(seen == std::vector{2, 2, 2});
}

TEST_CASE("a subscription that ended is not told, and neither is one of a log that is gone") {
  int told = 0;
  asio::io_context reactor{1};
  {
    EventLog log(reactor.get_executor());
    auto subscription = log.subscribe(0, [&] { ++told; });
    CHECK(log.subscribers() == 1);
    CHECK(subscription->next() == nullptr);
    log.append(event());
    subscription.reset();
    CHECK(log.subscribers() == 0);
    reactor.poll();
    log.append(event());
  }
  reactor.restart();
  reactor.poll();
  CHECK(told == 0);
}

TEST_CASE("limits of zero are taken as one") {
  Fixture f({.history = 0, .subscriber_queue = 0});
  f.append(3);
  CHECK(read_all(*f.log.subscribe(0, [] {})) == Read{"1-2", "3"});
}

/// What an earlier agent left.
std::vector<EventPtr> kept(const std::vector<std::uint64_t>& numbers) {
  std::vector<EventPtr> events;
  for (const auto number : numbers) {
    auto kept = std::make_shared<v1::Event>(event());
    kept->set_sequence(number);
    events.push_back(std::move(kept));
  }
  return events;
}

TEST_CASE("numbers and history of an earlier agent go on") {
  Fixture f({}, {.events = kept({4, 5, 6}), .last = 6});
  CHECK(f.log.first_sequence() == 4);
  CHECK(f.log.last_sequence() == 6);
  CHECK(f.log.append(event()).sequence() == 7);
  CHECK(read_all(*f.log.subscribe(0, [] {})) == Read{"1-3", "4", "5", "6", "7"});
  CHECK(read_all(*f.log.subscribe(5, [] {})) == Read{"6", "7"});
}

TEST_CASE("numbers that an earlier agent lost are a gap, wherever one resumes") {
  Fixture f({}, {.events = kept({2, 3, 6}), .last = 100});
  f.append(1);
  CHECK(read_all(*f.log.subscribe(0, [] {})) == Read{"1-1", "2", "3", "4-5", "6", "7-100", "101"});
  CHECK(read_all(*f.log.subscribe(3, [] {})) == Read{"4-5", "6", "7-100", "101"});
  CHECK(read_all(*f.log.subscribe(4, [] {})) == Read{"5-5", "6", "7-100", "101"});
  CHECK(read_all(*f.log.subscribe(6, [] {})) == Read{"7-100", "101"});
  CHECK(read_all(*f.log.subscribe(50, [] {})) == Read{"51-100", "101"});
  CHECK(read_all(*f.log.subscribe(100, [] {})) == Read{"101"});
  CHECK(f.log.subscribe(3, [] {})->next()->message() ==
        "events 4 to 5 were missed: an earlier evictd was killed, or could not write them down");
}

TEST_CASE("an agent that was killed before its first event is a gap as well") {
  Fixture f({}, {.events = {}, .last = 10});
  CHECK(read_all(*f.log.subscribe(0, [] {})) == Read{"1-10"});
  CHECK(read_all(*f.log.subscribe(10, [] {})).empty());
}

TEST_CASE("no more of the earlier events are kept than the history holds") {
  Fixture f({.history = 2}, {.events = kept({1, 2, 3}), .last = 3});
  CHECK(read_all(*f.log.subscribe(0, [] {})) == Read{"1-1", "2", "3"});
  f.append(1);
  CHECK(read_all(*f.log.subscribe(0, [] {})) == Read{"1-2", "3", "4"});
}

TEST_CASE("nobody is told of a number that is not reserved yet, and everybody once it is") {
  Fixture f({}, {.reserved = 2});
  int told = 0;
  const auto subscription = f.log.subscribe(0, [&] { ++told; });
  f.append(4);
  CHECK(f.log.last_sequence() == 2);
  CHECK(read_all(*subscription) == Read{"1", "2"});
  f.turn();
  CHECK(told == 1);
  CHECK(read_all(*subscription).empty());
  f.log.reserve(3);
  f.turn();
  CHECK(told == 2);
  CHECK(read_all(*subscription) == Read{"3"});
  f.log.reserve(1000);
  f.turn();
  CHECK(read_all(*subscription) == Read{"4"});
  f.log.reserve(5);  // nothing is taken back
  f.append(2);
  CHECK(read_all(*subscription) == Read{"5", "6"});
}

TEST_CASE("nobody is told of an event before it is saved, which is before anything that was posted for it") {
  Fixture f({}, {.events = kept({1, 2}), .last = 2});
  std::vector<std::string> order;
  Saver saver{[&] {
    order.push_back("saved " + std::to_string(f.log.unsaved().size()));
    f.log.saved();
  }};
  f.log.save_with(saver);
  const auto store = [&](const EventPtr&) { asio::post(f.reactor, [&] { order.emplace_back("stored"); }); };
  f.log.store_with(std::make_shared<Listener<decltype(store)>>(store));
  const auto subscription = f.log.subscribe(2, [&] { order.emplace_back("told"); });
  CHECK(read_all(*subscription).empty());
  f.append(2);
  CHECK(f.log.last_sequence() == 2);
  CHECK(f.log.last_number() == 4);
  CHECK(read_all(*subscription).empty());
  f.turn();
  CHECK(order == std::vector<std::string>{"saved 2", "stored", "told", "stored"});
  CHECK(read_all(*subscription) == Read{"3", "4"});

  // Within the handler, as before a kill.
  f.append(1);
  REQUIRE(f.log.unsaved().size() == 1);
  CHECK(f.log.unsaved().front()->sequence() == 5);
  f.log.saved();
  CHECK(f.log.unsaved().empty());
  CHECK(read_all(*subscription) == Read{"5"});
}

TEST_CASE("what was appended before saving began is saved with the first, and other numbers are as well") {
  Fixture f({}, {.events = kept({1}), .last = 1, .reserved = 10});
  f.append(1);
  int saves = 0;
  Saver saver{[&] {
    ++saves;
    f.log.saved();
  }};
  f.log.save_with(saver);
  CHECK(f.log.last_sequence() == 1);
  CHECK(f.log.unsaved().size() == 1);
  f.log.reserve(20);
  f.turn();
  CHECK(saves == 1);
  CHECK(f.log.last_sequence() == 2);
  CHECK(f.log.reserved() == 20);
}

TEST_CASE("more events than the history has places for do not end before they begin") {
  Fixture f({.history = 2});
  Saver saver{[&] { f.log.saved(); }};
  f.log.save_with(saver);
  f.append(5);
  CHECK(f.log.first_sequence() == 1);
  CHECK(f.log.last_sequence() == 0);
  CHECK(f.log.unsaved().size() == 2);
  f.turn();
  CHECK(f.log.first_sequence() == 4);
  CHECK(read_all(*f.log.subscribe(0, [] {})) == Read{"1-3", "4", "5"});
}

TEST_CASE("what is held back for too long falls out of the history like all else") {
  Fixture f({.history = 3}, {.reserved = 2});
  f.append(10);
  const auto subscription = f.log.subscribe(0, [] {});
  CHECK(read_all(*subscription) == Read{"1-2"});
  f.log.reserve(100);
  CHECK(read_all(*subscription) == Read{"3-7", "8", "9", "10"});
}

TEST_CASE("every event is told to the listener, with its number") {
  Fixture f;
  std::vector<std::uint64_t> numbers;
  const auto store = [&](const EventPtr& event) { numbers.push_back(event->sequence()); };
  f.log.store_with(std::make_shared<Listener<decltype(store)>>(store));
  f.append(3);
  CHECK(numbers == std::vector<std::uint64_t>{1, 2, 3});
}

TEST_CASE("what slow subscribers miss is counted, what was gone before they came is not") {
  Fixture f({.history = 8, .subscriber_queue = 4}, {.events = kept({5}), .last = 9});
  CHECK(read_all(*f.log.subscribe(0, [] {})) == Read{"1-4", "5", "6-9"});
  CHECK(f.log.missed() == 0);
  const auto slow = f.log.subscribe(9, [] {});
  const auto resumes = f.log.subscribe(9, [] {});
  CHECK(read_all(*slow).empty());
  f.append(10);
  CHECK(read_all(*slow) == Read{"10-15", "16", "17", "18", "19"});
  CHECK(f.log.missed() == 6);
  CHECK(read_all(*resumes).front() == "10-11");
  CHECK(f.log.missed() == 6);
}

}  // namespace
}  // namespace evictd::events::event_log_test
