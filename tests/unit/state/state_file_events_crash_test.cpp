// Agents that are killed at random moments, with what a state file on a tmpfs and a disk that is late then have of
// their events, and a client that resumes by number from each to the next.
#include "state/state_file.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "api/temporary_directory.hpp"
#include "events/event_store.hpp"
#include "events/kept_log.hpp"
#include "fixture/random.hpp"
#include "fixture/result.hpp"

namespace evictd::state::state_file_events_crash_test {
namespace {

namespace fs = std::filesystem;
using fixture::Random;
using fixture::value_of;

/// One evictd's log, with its state file, and its history where it has one.
class Life final : private events::SavesEvents {
 public:
  Life(const fs::path& directory, bool has_history) : state_{value_of(StateFile::open(directory / "state")).file} {
    const auto mark = newest_mark(state_.events(), std::nullopt);
    const auto rescued = mark ? rescue(state_.events(), *mark) : events::RescuedEvents{};
    REQUIRE(state_.store("the rest of the state"));
    if (has_history)
      kept_.emplace(directory / "events", 1000, rescued);
    else
      alone_.emplace(reactor_.get_executor(), events::EventLogLimits{}, events::merged({}, rescued));
    saver_.emplace(state_.events(), log());
    log().save_with(*this);
    REQUIRE(saver_->save());
  }

  [[nodiscard]] events::EventLog& log() { return kept_ ? *kept_->log : *alone_; }

  std::uint64_t append(const std::string& message) {
    evictd::v1::Event event;
    event.set_kind(evictd::v1::Event::RECOVERED);
    event.set_message(message);
    return log().append(std::move(event)).sequence();
  }

  /// As with the state of an eviction, before its kill: in two steps, of which the second may not come.
  void save_with_state(bool is_whole) {
    REQUIRE(saver_->write());
    if (!is_whole) return;
    REQUIRE(saver_->save_mark());
    saver_->finish();
  }

  void turn() {
    if (kept_) return kept_->turn();
    reactor_.restart();
    reactor_.poll();
  }

 private:
  void save_events() override { REQUIRE(saver_->save()); }

  StateFile state_;
  boost::asio::io_context reactor_{1};
  std::optional<test::KeptLog> kept_;
  std::optional<events::EventLog> alone_;
  std::optional<EventSaver> saver_;
};

/// Holds what it reads against what was told before: a number always means the same event.
class Client {
 public:
  void read(events::EventLog& log) {
    REQUIRE(last_ <= log.last_sequence());
    const auto subscription = log.subscribe(last_, [] {});
    while (const auto event = subscription->next()) {
      REQUIRE(event->kind() != evictd::v1::Event::GAP);
      CHECK(event->sequence() == last_ + 1);
      last_ = event->sequence();
      CHECK(told_.emplace(last_, event->message()).second);
    }
  }

  /// What somebody reads who was not there.
  void check_history(events::EventLog& log) const {
    const auto subscription = log.subscribe(0, [] {});
    while (const auto event = subscription->next()) {
      if (event->kind() == evictd::v1::Event::GAP) continue;
      if (const auto told = told_.find(event->sequence()); told != told_.end()) CHECK(told->second == event->message());
    }
  }

  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  std::map<std::uint64_t, std::string> told_;
  std::uint64_t last_ = 0;
};

/// What there is of both when evictd is killed now.
void copy_as_killed(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  fs::copy_file(from / "state", to / "state");
  if (fs::exists(from / "events")) test::copy_as_killed(from / "events", to / "events");
}

/// Until some moment at which it is killed.
void live(const fs::path& directory, Random& random, Client& client, bool has_history, const fs::path& next) {
  Life life{directory, has_history};
  client.check_history(life.log());
  const auto steps = random.between(0, 12);
  for (std::int64_t step = 0; step < steps; ++step) {
    for (auto count = random.between(0, 10); count > 0; --count)
      life.append(std::to_string(step) + " of " + directory.filename().native() +
                  std::string(static_cast<std::size_t>(random.between(0, 300)), 'x'));
    if (random.chance(30)) life.save_with_state(random.chance(80));
    if (random.chance(60)) life.turn();
    if (random.chance(60)) client.read(life.log());
  }
  copy_as_killed(directory, next);
}

}  // namespace

TEST_CASE("whenever agents are killed, a client reads each event once, without a gap, and no number means another") {
  for (const bool has_history : {true, false}) {
    CAPTURE(has_history);
    for (const auto seed : fixture::seeds(25)) {
      CAPTURE(seed);
      Random random{seed};
      const test::TemporaryDirectory directory;
      fs::create_directory(directory / "life-0");
      Client client;
      for (int number = 0; number < 8; ++number)
        live(directory / ("life-" + std::to_string(number)), random, client, has_history,
             directory / ("life-" + std::to_string(number + 1)));
      Life last{directory / "life-8", has_history};
      client.check_history(last.log());
      client.read(last.log());
      CHECK(client.last() == last.log().last_sequence());
    }
  }
}

}  // namespace evictd::state::state_file_events_crash_test
