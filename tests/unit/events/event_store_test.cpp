#include "events/event_store.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "api/running_server.hpp"
#include "api/temporary_directory.hpp"
#include "events/event_segment.hpp"
#include "events/kept_log.hpp"
#include "fixture/mount.hpp"
#include "os/log.hpp"
#include "support/skip.hpp"

namespace evictd::events::event_store_test {
namespace {

namespace fs = std::filesystem;
using fixture::error_of;
using test::copy_as_killed;
using test::eventually;
using test::KeptLog;
using test::read_after;
using test::rescued_of;
using test::segments_of;
using test::TemporaryDirectory;

using Read = std::vector<std::string>;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void replace_content(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

std::size_t stored_events(const fs::path& directory) {
  std::size_t count = 0;
  for (const auto& segment : segments_of(directory)) count += parse_segment(content_of(segment)).events.size();
  return count;
}

TEST_CASE("events and numbers go on over an orderly end, without a gap") {
  const TemporaryDirectory directory;
  {
    KeptLog first(directory.path());
    CHECK(first.log->last_sequence() == 0);
    first.append_many(3);
  }
  {
    KeptLog second(directory.path());
    CHECK(second.append("the fourth") == 4);
    CHECK(read_after(*second.log, 0) == Read{"1", "2", "3", "4"});
  }
  const KeptLog third(directory.path());
  CHECK(read_after(*third.log, 2) == Read{"3", "4"});
  CHECK(third.log->subscribe(3, [] {})->next()->message() == "the fourth");
}

TEST_CASE("an end without an event, and one before the reactor turned, change nothing") {
  const TemporaryDirectory directory;
  {
    const KeptLog idle(directory.path());
  }
  {
    KeptLog hasty(directory.path());
    CHECK(hasty.append() == 1);  // and its reactor never turns
  }
  const KeptLog next(directory.path());
  CHECK(read_after(*next.log, 0) == Read{"1"});
}

TEST_CASE("who was killed leaves a gap up to the numbers it had reserved") {
  const TemporaryDirectory directory;
  const fs::path killed = directory / "killed";
  KeptLog first(directory / "first");
  first.append_many(3);
  first.turn();
  REQUIRE(eventually([&] { return stored_events(directory / "first") == 3; }));
  first.append_many(2);  // told to clients, and not written yet
  copy_as_killed(directory / "first", killed);

  KeptLog second(killed);
  CHECK(second.append() == EventStore::block + 1);
  CHECK(read_after(*second.log, 0) == Read{"1", "2", "3", "4-65536", "65537"});
  CHECK(read_after(*second.log, 5) == Read{"6-65536", "65537"});
}

TEST_CASE("who was killed leaves no gap where its state has what the disk has not, and the next keeps it on the disk") {
  const TemporaryDirectory directory;
  const fs::path killed = directory / "killed";
  KeptLog first(directory / "first");
  first.append_many(3);
  first.turn();
  REQUIRE(eventually([&] { return stored_events(directory / "first") == 3; }));
  first.append("the fourth");
  first.append("the fifth");
  copy_as_killed(directory / "first", killed);
  const auto rescued = rescued_of(*first.log, 2);
  {
    KeptLog second(killed, 1000, rescued);
    CHECK(second.append() == 6);
    CHECK(read_after(*second.log, 0) == Read{"1", "2", "3", "4", "5", "6"});
    CHECK(second.log->subscribe(4, [] {})->next()->message() == "the fifth");
  }
  const KeptLog third(killed);
  CHECK(read_after(*third.log, 0) == Read{"1", "2", "3", "4", "5", "6"});
  CHECK(third.log->subscribe(3, [] {})->next()->message() == "the fourth");
}

TEST_CASE("who was killed before it told anything leaves no gap where its state says so") {
  const TemporaryDirectory directory;
  const KeptLog first(directory / "first");
  copy_as_killed(directory / "first", directory / "killed");
  KeptLog second(directory / "killed", 1000, {.events = {}, .last = 0, .reserved = first.log->reserved()});
  CHECK(second.append() == 1);
}

TEST_CASE("an event that the state has not, and the disk neither, is a gap of its own") {
  const TemporaryDirectory directory;
  KeptLog first(directory / "first");
  first.append_many(3);
  auto rescued = rescued_of(*first.log, 1);
  rescued.events.erase(rescued.events.begin() + 1);
  copy_as_killed(directory / "first", directory / "killed");
  KeptLog second(directory / "killed", 1000, rescued);
  CHECK(second.append() == 4);
  CHECK(read_after(*second.log, 0) == Read{"1", "2-2", "3", "4"});
}

TEST_CASE("a state that is older than what the disk has does not take numbers back") {
  const TemporaryDirectory directory;
  RescuedEvents rescued;
  {
    KeptLog first(directory.path());
    first.append_many(2);
    rescued = rescued_of(*first.log, 1);
    copy_as_killed(directory.path(), directory / "first");
  }
  SUBCASE("an evictd without a state ended in order since") {
    KeptLog(directory.path()).append_many(3);
    KeptLog next(directory.path(), 1000, rescued);
    CHECK(next.append() == 6);
    CHECK(read_after(*next.log, 0) == Read{"1", "2", "3", "4", "5", "6"});
  }
  SUBCASE("one was killed since, and the disk has nothing of it") {
    const fs::path killed = directory / "killed";
    KeptLog second(directory.path());
    second.append_many(3);
    copy_as_killed(directory.path(), killed);
    KeptLog next(killed, 1000, rescued);
    CHECK(next.append() == EventStore::block + 3);
    CHECK(read_after(*next.log, 0) == Read{"1", "2", "3-65538", "65539"});
  }
  SUBCASE("it is of one that was killed, and one without a state has told of the gap since and ended in order") {
    for (int i = 0; i < 2; ++i) CHECK(read_after(*KeptLog(directory / "first").log, 2) == Read{"3-65536"});
    KeptLog next(directory / "first", 1000, rescued);
    CHECK(next.append() == EventStore::block + 1);
    CHECK(read_after(*next.log, 0) == Read{"1", "2", "3-65536", "65537"});
  }
  SUBCASE("it is of one that told nothing, and one without a state was killed after it told something") {
    {
      const KeptLog quiet(directory.path());
      rescued = rescued_of(*quiet.log, 1);
    }
    KeptLog third(directory.path());
    third.append_many(3);
    copy_as_killed(directory.path(), directory / "killed");
    KeptLog next(directory / "killed", 1000, rescued);
    CHECK(next.append() == EventStore::block + 4);
  }
}

TEST_CASE("numbers are reserved anew once half of them are used, and no event waits for that") {
  const TemporaryDirectory directory;
  KeptLog log(directory / "kept", 100);
  const auto half = static_cast<int>(EventStore::block / 2) + 1;
  for (int i = 0; i < half; ++i) {
    log.append();
    if (i % 1000 == 0) log.turn();
  }
  log.turn();
  REQUIRE(eventually([&] {
    std::error_code ignored;
    fs::remove_all(directory / "killed", ignored);
    copy_as_killed(directory / "kept", directory / "killed");
    KeptLog next(directory / "killed", 100);
    return next.log->last_sequence() >= EventStore::block + static_cast<std::uint64_t>(half);
  }));
  for (int i = 0; i < half; ++i) {
    const auto number = log.append();
    CHECK(log.log->last_sequence() == number);
    if (i % 1000 == 0) log.turn();
  }
}

TEST_CASE("about as many events are kept as were asked for, on disk too") {
  const TemporaryDirectory directory;
  {
    KeptLog log(directory.path(), 400);
    for (int i = 0; i < 20; ++i) {
      log.append_many(100);
      log.turn();
    }
  }
  const auto stored = stored_events(directory.path());
  CHECK(stored >= 400);
  CHECK(stored <= 600);
  const KeptLog next(directory.path(), 400);
  CHECK(next.log->first_sequence() == 1601);
  CHECK(read_after(*next.log, 0).front() == "1-1600");
  CHECK(read_after(*next.log, 1600).size() == 400);
}

TEST_CASE("a smaller history takes the newest, and deletes what it does not need") {
  const TemporaryDirectory directory;
  KeptLog(directory.path(), 1000).append_many(900);
  const auto before = segments_of(directory.path()).size();
  const KeptLog next(directory.path(), 10);
  CHECK(next.log->first_sequence() == 891);
  CHECK(segments_of(directory.path()).size() < before);
}

/// Hundreds of lines are no news for whoever runs the tests.
struct Silence {
  Silence() { os::set_log_level(os::LogLevel::Error); }
  ~Silence() { os::set_log_level(os::LogLevel::Info); }
};

TEST_CASE("a history that is torn at any byte starts with what is whole") {
  const Silence silence;
  const TemporaryDirectory directory;
  {
    KeptLog log(directory / "kept");
    log.append_many(3);
    log.turn();
  }
  const auto segment = segments_of(directory / "kept").front();
  const auto bytes = content_of(segment);
  const auto all = parse_segment(bytes).events.size();
  REQUIRE(all == 3);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const fs::path torn = directory / ("torn-" + std::to_string(size));
    fs::create_directory(torn);
    fs::copy_file(fs::path(directory / "kept") / "numbers", torn / "numbers");
    replace_content(torn / segment.filename(), bytes.substr(0, size));
    const auto whole = parse_segment(std::string_view(bytes).substr(0, size)).events.size();
    {
      KeptLog log(torn);
      CHECK(log.append() == 4);
      Read expected;
      for (std::size_t number = 1; number <= whole; ++number) expected.push_back(std::to_string(number));
      if (whole < 3) expected.push_back(std::to_string(whole + 1) + "-3");
      expected.emplace_back("4");
      CHECK(read_after(*log.log, 0) == expected);
    }
    // What was cut off is not complained of again, and nothing of it comes back.
    const KeptLog again(torn);
    CHECK(read_after(*again.log, 0).size() == whole + (whole < 3 ? 2 : 1));
    fs::remove_all(torn);
  }
}

TEST_CASE("files that are no segments of ours are set aside, and the rest is read") {
  const TemporaryDirectory directory;
  KeptLog(directory.path()).append_many(5);
  const auto foreign = directory.path() / segment_name(2);
  const auto newer = directory.path() / segment_name(3);
  const auto huge = directory.path() / segment_name(4);
  replace_content(foreign, "hello");
  replace_content(newer, "evictd events 2\nwho knows");
  replace_content(huge, "evictd events 1\n");
  fs::resize_file(huge, std::uintmax_t{1} << 30);
  fs::create_directory(directory.path() / segment_name(6));
  replace_content(directory.path() / "notes.txt", "not ours");
  {
    KeptLog log(directory.path());
    CHECK(log.append() == 6);
    CHECK(read_after(*log.log, 0) == Read{"1", "2", "3", "4", "5", "6"});
  }
  for (const auto& path : {foreign, newer, huge}) CHECK(fs::exists(path.native() + ".aside"));
  CHECK(fs::exists(directory.path() / "notes.txt"));
  const KeptLog log(directory.path());
  CHECK(read_after(*log.log, 0).size() == 6);
}

TEST_CASE("a segment that was copied from elsewhere does not mix up the numbers") {
  const TemporaryDirectory directory;
  KeptLog(directory.path()).append_many(5);
  const auto own = segments_of(directory.path()).front();
  fs::copy_file(own, directory.path() / segment_name(2));
  const KeptLog log(directory.path());
  const auto read = read_after(*log.log, 0);
  CHECK(read.back() == "5");
  CHECK(std::ranges::is_sorted(read));
}

TEST_CASE("without the file of numbers no number is given that may have been told") {
  const TemporaryDirectory directory;
  KeptLog(directory.path()).append_many(5);
  for (const bool damaged : {false, true}) {
    if (damaged)
      replace_content(directory / "numbers", "who knows");
    else
      fs::remove(directory / "numbers");
    const KeptLog log(directory.path());
    CHECK(log.log->last_sequence() >= 5 + 2 * EventStore::block);
  }
}

TEST_CASE("two of them do not share a directory") {
  const TemporaryDirectory directory;
  boost::asio::io_context reactor;
  {
    const KeptLog first(directory.path());
    CHECK(error_of(EventStore::open(reactor.get_executor(), directory.path(), 10)) ==
          "another evictd keeps its events in " + directory.path().native());
  }
  CHECK(error_of(EventStore::open(reactor.get_executor(), directory.path(), 10)) == "no error");
}

TEST_CASE("a directory that cannot be made is an error") {
  const TemporaryDirectory directory;
  replace_content(directory / "file", "");
  boost::asio::io_context reactor;
  CHECK(error_of(EventStore::open(reactor.get_executor(), directory / "file/events", 10)).find("cannot be made") !=
        std::string::npos);
  CHECK(error_of(EventStore::open(reactor.get_executor(), directory / "file", 10)).find(directory / "file") !=
        std::string::npos);
}

TEST_CASE("a full disk loses events, which is a gap later, and is written to again once there is room") {
  SKIP_IF(fixture::Mount::impossible());
  const TemporaryDirectory directory;
  const auto mounted = fixture::Mount::tmpfs(directory.path(), "size=1m");
  const auto filler = directory.path() / "filler";
  std::uint64_t lost_first = 0;
  std::uint64_t lost_last = 0;
  {
    KeptLog log(directory.path());
    log.append_many(3);
    log.turn();
    REQUIRE(eventually([&] { return stored_events(directory.path()) == 3; }));
    replace_content(filler, std::string(2 << 20, 'x'));
    lost_first = log.append(std::string(8192, 'x'));
    log.turn();
    REQUIRE(eventually([&] { return log.store->lost() > 0; }));
    lost_last = log.append(std::string(8192, 'x'));
    log.turn();
    REQUIRE(eventually([&] { return log.store->lost() == 2; }));
    CHECK(read_after(*log.log, 0) == Read{"1", "2", "3", "4", "5"});  // those who follow miss nothing
    fs::remove(filler);
    log.append_many(2);
  }
  const KeptLog next(directory.path());
  CHECK(lost_first == 4);
  CHECK(lost_last == 5);
  CHECK(read_after(*next.log, 0) == Read{"1", "2", "3", "4-5", "6", "7"});
}

TEST_CASE("more than the disk takes in time is lost there, counted, and a gap later") {
  const TemporaryDirectory directory;
  constexpr int many = 20'000;
  std::uint64_t lost = 0;
  {
    KeptLog log(directory.path(), many);
    log.append_many(many);  // at once: beyond what may wait to be written
    log.turn();
    lost = log.store->lost();
    CHECK(lost > 0);
    CHECK(read_after(*log.log, 0).size() == many);
  }
  const KeptLog next(directory.path(), many);
  const auto read = read_after(*next.log, 0);
  CHECK(read.size() == many - lost + 1);
  CHECK(read.back() == std::to_string(many - lost + 1) + "-" + std::to_string(many));
}

TEST_CASE("opening and closing leaves no descriptor and no thread behind") {
  const TemporaryDirectory directory;
  const auto count = [](const char* what) {
    return std::distance(fs::directory_iterator(what), fs::directory_iterator());
  };
  KeptLog(directory.path()).append_many(3);
  const auto files = count("/proc/self/fd");
  const auto threads = count("/proc/self/task");
  for (int i = 0; i < 20; ++i) KeptLog(directory.path()).append_many(3);
  // On a disk that is slow for longer than an end waits, the writer ends later.
  CHECK(eventually([&] { return count("/proc/self/fd") <= files; }));
  CHECK(eventually([&] { return count("/proc/self/task") <= threads; }));
}

}  // namespace
}  // namespace evictd::events::event_store_test
