// Agents that are killed, or end in order, at random moments, and a client that resumes by number from each to the
// next.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <set>

#include "api/temporary_directory.hpp"
#include "events/event_segment.hpp"
#include "events/kept_log.hpp"
#include "fixture/random.hpp"

namespace evictd::events::event_store_property_test {
namespace {

namespace fs = std::filesystem;
using fixture::Random;
using test::copy_as_killed;
using test::KeptLog;
using test::segments_of;

/// Holds what it reads against what was appended.
class Client {
 public:
  void read(EventLog& log, const std::map<std::uint64_t, std::string>& appended) {
    REQUIRE(last_ <= log.last_sequence());
    const auto subscription = log.subscribe(last_, [] {});
    while (const auto event = subscription->next()) {
      if (event->kind() == v1::Event::GAP) {
        CHECK(event->gap().from() == last_ + 1);
        CHECK(event->gap().to() == event->sequence());
        CHECK(event->gap().to() >= event->gap().from());
      } else {
        CHECK(event->sequence() == last_ + 1);
        REQUIRE(appended.contains(event->sequence()));
        CHECK(event->message() == appended.at(event->sequence()));
        ++events_;
      }
      last_ = event->sequence();
    }
  }

  [[nodiscard]] int events() const { return events_; }

 private:
  std::uint64_t last_ = 0;
  int events_ = 0;
};

void tear_last_segment(const fs::path& directory, Random& random) {
  const auto segments = segments_of(directory);
  if (segments.empty()) return;
  const auto size = static_cast<std::int64_t>(fs::file_size(segments.back()));
  fs::resize_file(segments.back(), static_cast<std::uintmax_t>(random.between(0, size)));
}

/// One agent's life. Its directory is as it would be at the moment of a kill, or after an orderly end.
void live(const fs::path& directory, int life, Random& random, std::map<std::uint64_t, std::string>& appended,
          Client& client, const fs::path& next) {
  const bool killed = random.chance(70);
  {
    KeptLog log(directory, 200);
    for (int step = 0; step < 12; ++step) {
      for (auto count = random.between(0, 40); count > 0; --count) {
        const auto message =
            std::to_string(life) + ": " + std::string(static_cast<std::size_t>(random.between(0, 300)), 'x');
        const auto number = log.append(message);
        CHECK_MESSAGE(appended.emplace(number, message).second, "the number " << number << " was given twice");
        CHECK(appended.rbegin()->first == number);
      }
      if (random.chance(60)) log.turn();
      if (random.chance(60)) client.read(*log.log, appended);
    }
    if (killed) copy_as_killed(directory, next);
  }
  if (!killed) fs::rename(directory, next);
  if (killed && random.chance(50)) tear_last_segment(next, random);
}

TEST_CASE("whenever agents are killed, no number is given twice, and a client reads each event once or a gap") {
  for (const auto seed : fixture::seeds(40)) {
    CAPTURE(seed);
    Random random{seed};
    const test::TemporaryDirectory directory;
    std::map<std::uint64_t, std::string> appended;
    Client client;
    for (int life = 0; life < 8; ++life)
      live(directory / ("life-" + std::to_string(life)), life, random, appended, client,
           directory / ("life-" + std::to_string(life + 1)));
    KeptLog last(directory / "life-8", 200);
    client.read(*last.log, appended);
    CHECK(client.events() > 0);
  }
}

}  // namespace
}  // namespace evictd::events::event_store_property_test
