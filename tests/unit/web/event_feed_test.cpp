#include "web/event_feed.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>
#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "events/event_log.hpp"
#include "events/status_source.hpp"
#include "events/stored_events.hpp"

namespace evictd::web::event_feed_test {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace evictd;

namespace {

/// The feed with its log on a reactor that also does the writing.
struct Feeding : events::StatusSource {
  explicit Feeding(web::FeedLimits limits = {}, events::EventLogLimits log_limits = {},
                   events::EarlierEvents earlier = {})
      : log{reactor.get_executor(), log_limits, std::move(earlier)} {
    auto on_failure = [this](const std::string& reason) { failure = reason; };
    feed.emplace(reactor.get_executor(), reactor.get_executor(), log, *this, std::move(on_failure), limits);
  }

  v1::NodeStatus status() override {
    ++asked;
    if (broken) throw std::bad_alloc{};
    v1::NodeStatus status;
    status.set_pods(110);
    status.add_latencies()->add_buckets()->set_count(7);
    return status;
  }

  void append(int count = 1) {
    for (int i = 0; i < count; ++i) {
      v1::Event event;
      event.set_kind(v1::Event::RECOVERED);
      event.set_message("line\nend </script> \"quoted\"");
      log.append(std::move(event));
    }
  }

  /// Everything that reaches the watcher until `enough`.
  void read(web::Messages& watcher, std::vector<std::string>& into) {
    asio::co_spawn(
        reactor,
        [](web::Messages& from, std::vector<std::string>& texts, bool& over) -> asio::awaitable<void> {
          while (const auto text = co_await from.next()) texts.push_back(*text);
          over = true;
        }(watcher, into, over),
        asio::detached);
  }

  bool run_until(const std::function<bool()>& enough) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!enough() && std::chrono::steady_clock::now() < end) {
      reactor.restart();
      reactor.run_one_for(10ms);
    }
    return enough();
  }

  asio::io_context reactor{1};
  events::EventLog log;
  int asked = 0;
  bool over = false;
  bool broken = false;  // there is no memory for a status
  std::string failure;  // the last one, as the owner is told
  std::optional<web::EventFeed> feed;
};

std::size_t count(const std::vector<std::string>& texts, std::string_view part) {
  std::size_t result = 0;
  for (const auto& text : texts)
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++result;
  return result;
}

}  // namespace

TEST_CASE("a watcher gets a snapshot with the last events, then each event once, and the status again and again") {
  Feeding feeding{{.history = 3, .interval = 20ms}};
  feeding.append(5);
  std::vector<std::string> texts;
  const auto watcher = feeding.feed->watch();
  feeding.read(*watcher, texts);
  REQUIRE(feeding.run_until([&] { return !texts.empty(); }));
  CHECK(texts[0].starts_with("retry: 2000\nevent: snapshot\ndata: {\"status\":{\"pods\":110,"));
  CHECK(texts[0].ends_with("\n\n"));
  CHECK(count(texts, R"("sequence":")") == 3);
  CHECK(count(texts, R"("sequence":"5")") == 1);
  CHECK(count(texts, "buckets") == 0);
  feeding.append(100);
  REQUIRE(
      feeding.run_until([&] { return count(texts, "event: event\n") >= 100 && count(texts, "event: status\n") >= 3; }));
  for (int sequence = 6; sequence <= 105; ++sequence) {
    CAPTURE(sequence);
    CHECK(count(texts, fmt::format(R"("sequence":"{}")", sequence)) == 1);
  }
  CHECK(count(texts, "line\\nend") == 103);  // a line end in a text ends no line of the stream
}

TEST_CASE("a snapshot has the last events, however many numbers were never given between them") {
  Feeding feeding{{.history = 4}, {}, {.events = test::numbered_from(1, 100), .last = 65'536}};
  feeding.append(2);
  std::vector<std::string> texts;
  const auto watcher = feeding.feed->watch();
  feeding.read(*watcher, texts);
  REQUIRE(feeding.run_until([&] { return !texts.empty(); }));
  CHECK(count(texts, R"("sequence":")") == 4);
  for (const auto* sequence : {"99", "100", "65537", "65538"})
    CHECK(count(texts, fmt::format(R"("sequence":"{}")", sequence)) == 1);
}

TEST_CASE("a text that cannot be made ends the watchers, who come back, is told of, and ends nothing else") {
  Feeding feeding{{.interval = 10ms}};
  std::vector<std::string> texts;
  auto watcher = feeding.feed->watch();
  feeding.read(*watcher, texts);
  REQUIRE(feeding.run_until([&] { return count(texts, "event: status\n") >= 1; }));
  feeding.broken = true;
  REQUIRE(feeding.run_until([&] { return feeding.over; }));
  CHECK(feeding.failure == std::bad_alloc{}.what());
  watcher.reset();

  feeding.broken = false;
  texts.clear();
  watcher = feeding.feed->watch();
  feeding.read(*watcher, texts);
  CHECK(feeding.run_until([&] { return count(texts, "event: status\n") >= 2; }));
}

TEST_CASE("nothing is asked and nothing subscribed while nobody watches") {
  Feeding feeding{{.interval = 10ms}};
  feeding.append();
  feeding.reactor.run_for(50ms);
  CHECK(feeding.asked == 0);
  auto watcher = feeding.feed->watch();
  CHECK(feeding.log.subscribers() == 1);
  REQUIRE(feeding.run_until([&] { return feeding.asked > 2; }));
  watcher.reset();
  CHECK(feeding.log.subscribers() == 0);
  CHECK(feeding.feed->watchers() == 0);
  const auto asked = feeding.asked;
  feeding.reactor.restart();
  feeding.reactor.run_for(50ms);
  CHECK(feeding.asked == asked);
}

TEST_CASE("there are as many watchers as the limit says, and one that goes makes room") {
  Feeding feeding{{.watchers = 2}};
  auto first = feeding.feed->watch();
  const auto second = feeding.feed->watch();
  CHECK(feeding.feed->watch() == nullptr);
  first.reset();
  CHECK(feeding.feed->watch() != nullptr);
}

TEST_CASE("whoever comes and goes has only so many snapshots written, and is welcome again once they are") {
  Feeding feeding{{.watchers = 2}};
  feeding.append(3);
  int begun = 0;
  for (int i = 0; i < 100; ++i)
    if (feeding.feed->watch() != nullptr) ++begun;
  CHECK(begun == 4);
  CHECK(feeding.asked == 4);
  bool is_welcome = false;
  CHECK(feeding.run_until([&] { return is_welcome = is_welcome || feeding.feed->watch() != nullptr; }));
}

TEST_CASE("a watcher that takes nothing is cut off, the other one goes on") {
  Feeding feeding{{.queue = 4, .interval = 5ms}};
  const auto stuck = feeding.feed->watch();
  const auto reader = feeding.feed->watch();
  std::vector<std::string> texts;
  feeding.read(*reader, texts);
  REQUIRE(feeding.run_until([&] { return count(texts, "event: status\n") > 10; }));
  std::vector<std::string> rest;
  CHECK_FALSE(feeding.over);
  feeding.read(*stuck, rest);
  REQUIRE(feeding.run_until([&] { return feeding.over; }));
  CHECK(rest.empty());
}

TEST_CASE("a flood of events is told in a bounded number of messages, with a gap where they were too many") {
  Feeding feeding{{.interval = 1h}, {.history = 500, .subscriber_queue = 100}};
  std::vector<std::string> texts;
  const auto watcher = feeding.feed->watch();
  feeding.read(*watcher, texts);
  REQUIRE(feeding.run_until([&] { return !texts.empty(); }));
  feeding.append(2000);
  REQUIRE(feeding.run_until([&] { return count(texts, R"("sequence":"2000")") == 1; }));
  CHECK(count(texts, R"("kind":"GAP")") >= 1);
  CHECK(count(texts, "event: event\n") <= 102);
}

TEST_CASE("watchers hear the end of the feed, and may outlive it") {
  Feeding feeding;
  std::vector<std::string> texts;
  const auto watcher = feeding.feed->watch();
  feeding.read(*watcher, texts);
  REQUIRE(feeding.run_until([&] { return !texts.empty(); }));
  feeding.feed.reset();
  CHECK(feeding.run_until([&] { return feeding.over; }));
  CHECK(feeding.log.subscribers() == 0);
}

}  // namespace evictd::web::event_feed_test
