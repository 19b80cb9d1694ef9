#include "events/store_writer.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/running_server.hpp"
#include "cri/run.hpp"
#include "events/event_segment.hpp"
#include "events/stored_events.hpp"
#include "fixture/captured_log.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::events::store_writer_test {
namespace {

using fixture::dir;
using test::numbered;
using test::numbered_from;
using test::numbers_of;

/// A directory of events and the thread for it, which runs once the test says so. Up to the number 10 the last start
/// has reserved all.
struct Scene {
  explicit Scene(std::chrono::milliseconds patience = std::chrono::seconds{5}) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    lock_is_held_by.reset(ends[0]);
    writer = std::make_shared<StoreWriter>(
        StoreWriter::Parts{.reactor = reactor.get_executor(),
                           .lock = os::FileDescriptor{ends[1]},
                           .numbers = fixture::value_of(NumberFile::open(tree.path("numbers"))),
                           .segments = SegmentWriter{tree.path("events"), 100'000, {}},
                           .reserved = 10,
                           .patience = patience});
  }

  [[nodiscard]] std::optional<std::uint64_t> highest() const {
    return fixture::value_of(NumberFile::open(tree.path("numbers"))).highest();
  }
  /// The numbers in the segment that begins with this one.
  [[nodiscard]] std::vector<std::uint64_t> stored(std::uint64_t first) const {
    std::ifstream file(tree.path("events") / segment_name(first), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return numbers_of(parse_segment(bytes).events);
  }
  /// The pipe's other end stands for the lock: it is at its end once nobody has that one open.
  [[nodiscard]] bool is_locked() const {
    char byte = 0;
    return ::read(lock_is_held_by.get(), &byte, 1) < 0 && errno == EAGAIN;
  }

  fixture::Tree tree{dir("events")};
  boost::asio::io_context reactor{1};
  os::FileDescriptor lock_is_held_by;
  std::shared_ptr<StoreWriter> writer;
};

/// The thread has taken as much as may wait, of which two are lost, and hangs: its segment is a pipe that nobody reads.
struct HangingScene : Scene {
  HangingScene() : Scene{std::chrono::milliseconds{50}} {
    REQUIRE(::mkfifo(segment().c_str(), 0600) == 0);
    writer->reserve_for(log);
    writer->take(numbered_from(1, StoreWriter::queue_limit + 2), 10);
    writer->start();
  }
  ~HangingScene() {
    const os::FileDescriptor reader{::open(segment().c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK)};
    std::jthread drain{[&](const std::stop_token& over) {
      std::array<char, 65'536> bytes{};
      while (!over.stop_requested())
        if (::read(reader.get(), bytes.data(), bytes.size()) < 0) std::this_thread::yield();
    }};
    CHECK(writer->finish(next));
  }
  HangingScene(const HangingScene&) = delete;
  HangingScene& operator=(const HangingScene&) = delete;

  [[nodiscard]] std::filesystem::path segment() const { return tree.path("events") / segment_name(1); }
  /// Another event comes.
  void take_one(std::uint64_t reserve = 10) { writer->take({numbered(next++)}, reserve); }

  std::uint64_t next = StoreWriter::queue_limit + 3;
  EventLog log{reactor.get_executor(), {}, {.events = {}, .last = 10, .reserved = 10}};
};

}  // namespace

TEST_CASE("events that the disk may have lost are told of as those that could not be written") {
  Scene scene;
  const auto failing = scene.tree.path("events") / segment_name(1);
  REQUIRE(::mkfifo(failing.c_str(), 0600) == 0);
  const os::FileDescriptor reader{::open(failing.c_str(), O_RDWR | O_CLOEXEC)};
  const fixture::CapturedLog log;
  scene.writer->take(numbered_from(1, 3), 10);
  scene.writer->start();
  CHECK(scene.writer->finish(3));
  CHECK(scene.writer->lost() == 3);
  CHECK(log.lines() == std::vector<std::string>{"stateDirectory: " + failing.native() +
                                                ": Invalid argument; 3 events are not kept over a restart"});
}

TEST_CASE("what was taken is written before the end, with the last number, and the directory is free then") {
  Scene scene;
  scene.writer->take(numbered_from(1, 2), 10);
  scene.writer->take({numbered(3)}, 10);
  scene.writer->start();
  CHECK(scene.is_locked());
  CHECK(scene.writer->finish(3));
  CHECK(scene.stored(1) == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(scene.highest() == 3);
  CHECK_FALSE(scene.is_locked());
  CHECK(scene.writer->lost() == 0);
}

TEST_CASE("the log may tell of numbers once they are reserved on the disk, and never of fewer again") {
  Scene scene;
  EventLog log{scene.reactor.get_executor(), {}, {.events = {}, .last = 10, .reserved = 10}};
  scene.writer->reserve_for(log);
  v1::Event event;
  event.set_kind(v1::Event::RECOVERED);
  log.append(std::move(event));
  CHECK(log.last_sequence() == 10);

  scene.writer->take({numbered(11)}, 100);
  scene.writer->start();
  REQUIRE(test::run_until(scene.reactor, [&log] { return log.reserved() == 100; }));
  CHECK(scene.highest() == 100);
  CHECK(log.last_sequence() == 11);

  scene.writer->take({numbered(12)}, 50);
  REQUIRE(test::eventually([&scene] { return scene.stored(11).size() == 2; }));
  CHECK(scene.highest() == 100);
  CHECK(log.reserved() == 100);
  CHECK(scene.writer->finish(12));
}

TEST_CASE("more than may wait is lost, the newest of it, and counted") {
  const fixture::CapturedLog log;
  Scene scene;
  scene.writer->take(numbered_from(1, StoreWriter::queue_limit - 1), 0);
  CHECK(scene.writer->lost() == 0);
  scene.writer->take(numbered_from(StoreWriter::queue_limit, StoreWriter::queue_limit + 2), 0);
  CHECK(scene.writer->lost() == 2);
  scene.writer->start();
  CHECK(scene.writer->finish(StoreWriter::queue_limit + 2));
  const auto stored = scene.stored(1);
  REQUIRE(stored.size() == StoreWriter::queue_limit);
  CHECK(stored.back() == StoreWriter::queue_limit);
  CHECK(scene.highest() == StoreWriter::queue_limit + 2);
  CHECK(log.lines() ==
        std::vector<std::string>{"stateDirectory: the disk does not keep up; 2 events are not kept over a restart"});
}

TEST_CASE("what the disk does not take is lost, which is said once, and what comes later is written again") {
  const fixture::CapturedLog log;
  Scene scene;
  scene.tree.remove("events");
  scene.writer->start();
  scene.writer->take({numbered(1)}, 0);
  REQUIRE(test::eventually([&scene] { return scene.writer->lost() == 1; }));
  scene.writer->take(numbered_from(2, 3), 0);
  REQUIRE(test::eventually([&scene] { return scene.writer->lost() == 3; }));
  scene.tree.add("", dir("events"));
  scene.writer->take({numbered(4)}, 0);
  CHECK(scene.writer->finish(4));
  CHECK(scene.stored(4) == std::vector<std::uint64_t>{4});
  CHECK(scene.writer->lost() == 3);
  CHECK(log.lines() ==
        std::vector<std::string>{"stateDirectory: " + (scene.tree.path("events") / segment_name(1)).native() +
                                 ": No such file or directory; 1 event is not kept over a restart"});
}

TEST_CASE("a disk that does not answer is told of once, with what is lost, by the reactor, which still runs") {
  const fixture::CapturedLog lines;
  HangingScene scene;
  REQUIRE(test::run_until(scene.reactor, [&] {
    if (lines.lines().empty()) scene.take_one();
    return !lines.lines().empty();
  }));
  const auto lost = scene.writer->lost();
  for (int i = 0; i < 3; ++i) scene.take_one();
  REQUIRE(lines.lines().size() == 1);
  const auto line = lines.lines().front();
  CHECK(line.starts_with("stateDirectory: the disk does not answer; "));
  CHECK(line.ends_with(fmt::format(" for it, and {} events are not kept over a restart", lost)));
  CHECK(lost >= 2);
  CHECK(scene.log.reserved() == 10);  // nothing was wanted
}

TEST_CASE("subscribers are told of what has a number that a disk that does not answer keeps from being reserved") {
  const fixture::CapturedLog lines;
  HangingScene scene;
  v1::Event event;
  event.set_kind(v1::Event::RECOVERED);
  scene.log.append(std::move(event));
  REQUIRE(test::run_until(scene.reactor, [&] {
    scene.take_one();
    return !lines.lines().empty();
  }));
  CHECK(scene.log.last_sequence() == 10);
  scene.take_one(100);  // and nothing comes afterwards
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.log.last_sequence() == 11; }));
  REQUIRE(lines.lines().size() == 2);
  CHECK(lines.lines().back() ==
        "stateDirectory: the disk does not answer; should evictd be killed, numbers of events may be given twice");
}

TEST_CASE("a log that is forgotten, since it may be gone, is not touched any more") {
  HangingScene scene;
  v1::Event event;
  event.set_kind(v1::Event::RECOVERED);
  scene.log.append(std::move(event));
  scene.take_one(100);
  SUBCASE("it is not") {
    CHECK(test::run_until(scene.reactor, [&] {
      scene.take_one(100);
      return scene.log.reserved() > 10;
    }));
  }
  SUBCASE("it is") {
    scene.writer->forget_log();
    std::this_thread::sleep_for(std::chrono::milliseconds{60});
    scene.take_one(100);
    CHECK(scene.log.reserved() == 10);
  }
}

TEST_CASE("numbers that are reserved, of which a busy reactor has not heard yet, are no more than those") {
  Scene scene{std::chrono::milliseconds{1}};
  EventLog log{scene.reactor.get_executor(), {}, {.events = {}, .last = 10, .reserved = 10}};
  scene.writer->reserve_for(log);
  scene.writer->start();
  scene.writer->take({numbered(11)}, 100);
  REQUIRE(test::eventually([&scene] { return !scene.stored(11).empty(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds{5});
  v1::Event event;
  event.set_kind(v1::Event::RECOVERED);
  log.append(std::move(event));
  const std::vector<EventPtr> more = numbered_from(12, 200);
  for (const auto& next : more) scene.writer->take({next}, 100);
  CHECK(log.reserved() == 10);
  REQUIRE(test::run_until(scene.reactor, [&log] { return log.reserved() > 10; }));
  CHECK(log.reserved() == 100);
  CHECK(scene.writer->finish(200));
}

TEST_CASE("what the disk takes in time sets no timer, which would wake an idle evictd") {
  Scene scene;
  EventLog log{scene.reactor.get_executor(), {}, {.events = {}, .last = 10, .reserved = 10}};
  scene.writer->reserve_for(log);
  scene.writer->start();
  for (std::uint64_t number = 1; number <= 5; ++number) scene.writer->take({numbered(number)}, 10);
  scene.reactor.restart();
  scene.reactor.poll();
  CHECK(scene.reactor.stopped());
  CHECK(scene.writer->finish(5));
}

}  // namespace evictd::events::store_writer_test
