#include "os/inotify.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <fstream>

#include "fixture/tree.hpp"

namespace evictd::os::inotify_test {
namespace {

using namespace std::chrono_literals;

struct Watched final : Inotify::Listener {
  explicit Watched(core::Duration pause) : queue{reactor.get_executor(), pause, *this} {
    REQUIRE(queue.open());
    REQUIRE(queue.add(tree.path(), IN_MODIFY));
  }
  void on_event(const Inotify::Event& event) override {
    ++events;
    if ((event.mask & IN_Q_OVERFLOW) != 0) ++overflows;
  }
  void on_batch_end() override { ++batches; }
  /// To two files in turn: the kernel merges two events that are the same.
  void write(int times) {
    for (int time = 0; time < times; ++time) (time % 2 == 0 ? one : other) << 'x' << std::flush;
  }

  fixture::Tree tree{{fixture::file("one", ""), fixture::file("other", "")}};
  std::ofstream one{tree.path("one"), std::ios::app};
  std::ofstream other{tree.path("other"), std::ios::app};
  boost::asio::io_context reactor{1};
  int events = 0;
  int overflows = 0;
  int batches = 0;
  Inotify queue;
};

}  // namespace

TEST_CASE("a batch is all that the kernel has gathered, and until the next one nothing wakes the reactor") {
  Watched watched{10min};
  watched.write(10'000);
  while (watched.batches == 0) watched.reactor.run_one();
  CHECK(watched.events == 10'000);
  CHECK(watched.overflows == 0);
  watched.write(100);
  CHECK(watched.reactor.run_for(100ms) == 0);
  CHECK(watched.batches == 1);
}

TEST_CASE("after the rest what came meanwhile is told") {
  Watched watched{50ms};
  watched.write(2);
  while (watched.batches == 0) watched.reactor.run_one();
  watched.write(2);
  while (watched.batches == 1) watched.reactor.run_one();
  CHECK(watched.events == 4);
}

}  // namespace evictd::os::inotify_test
