#include "events/store_writer.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
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
  Scene() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    lock_is_held_by.reset(ends[0]);
    writer = std::make_shared<StoreWriter>(
        StoreWriter::Parts{.reactor = reactor.get_executor(),
                           .lock = os::FileDescriptor{ends[1]},
                           .numbers = fixture::value_of(NumberFile::open(tree.path("numbers"))),
                           .segments = SegmentWriter{tree.path("events"), 100'000, {}},
                           .reserved = 10});
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

}  // namespace evictd::events::store_writer_test
