#include "wake/approach_timer.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>

namespace evictd::wake::approach_timer_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t mebi = 1 << 20;

struct Approaches final : ApproachListener {
  void approaches() override { ++told; }
  void recedes() override { ++receded; }
  int told = 0;
  int receded = 0;
};

struct Timer {
  void arm(std::int64_t threshold, std::int64_t available, core::Signal signal = core::Signal::MemoryAvailable) {
    Arming arming;
    arming.levels.push_back({.signal = signal, .threshold = threshold, .available = available});
    timer.arm(arming);
  }
  void arm_both(std::int64_t hard, std::int64_t soft, std::int64_t available) {
    Arming arming;
    arming.levels.push_back({.hard = true, .threshold = hard, .available = available});
    arming.levels.push_back({.hard = false, .threshold = soft, .available = available});
    timer.arm(arming);
  }
  /// Runs until it has told so often.
  bool tells(int times) {
    reactor.restart();
    for (int i = 0; i < 100 && approaches.told < times; ++i) reactor.run_one_for(100ms);
    return approaches.told >= times;
  }
  /// Whether it goes off by itself.
  bool waits() {
    reactor.restart();
    reactor.poll();
    return !reactor.stopped();
  }

  boost::asio::io_context reactor{1};
  Approaches approaches;
  ApproachTimer timer{reactor.get_executor(), approaches};
};

}  // namespace

TEST_CASE("while a memory threshold is near it is told so by the second, and nothing wakes where it is far or met") {
  Timer timer;
  timer.arm(100 * mebi, 800 * mebi);
  CHECK_FALSE(timer.waits());
  timer.arm(100 * mebi, 300 * mebi, core::Signal::NodefsAvailable);
  CHECK_FALSE(timer.waits());
  timer.arm(100 * mebi, 300 * mebi);
  CHECK(timer.waits());
  CHECK(timer.approaches.told == 0);  // the pass has just looked
  timer.reactor.run_for(2500ms);
  CHECK(timer.approaches.told >= 1);
  CHECK(timer.waits());
  timer.arm(100 * mebi, 90 * mebi);
  CHECK_FALSE(timer.waits());
}

TEST_CASE(
    "that a soft threshold is met, and its grace period runs, keeps nobody from hearing that the hard one is near") {
  Timer timer;
  timer.arm_both(100 * mebi, 400 * mebi, 300 * mebi);
  CHECK(timer.waits());
  CHECK(timer.tells(1));
  timer.arm_both(100 * mebi, 400 * mebi, 90 * mebi);
  CHECK_FALSE(timer.waits());
  CHECK(timer.approaches.receded == 0);
}

TEST_CASE("a hard threshold for which nobody goes is as near as can be") {
  Timer timer;
  Arming arming;
  arming.levels.push_back({.hard = true, .threshold = 100 * mebi, .available = 90 * mebi});
  arming.nobody_goes = true;
  timer.timer.arm(arming);
  CHECK(timer.waits());
}

TEST_CASE("a large threshold is near from further away") {
  Timer timer;
  timer.arm(1024 * mebi, 1900 * mebi);
  CHECK(timer.waits());
  timer.arm(1024 * mebi, 2100 * mebi);
  CHECK_FALSE(timer.waits());
}

TEST_CASE("that memory is near no more is told once, after the pass that finds it far, and not while it is met") {
  Timer timer;
  timer.arm(100 * mebi, 800 * mebi);
  CHECK(timer.approaches.receded == 0);  // it never was near
  timer.arm(100 * mebi, 300 * mebi);
  timer.arm(100 * mebi, 800 * mebi);
  CHECK(timer.approaches.receded == 0);  // and nobody was told so
  timer.arm(100 * mebi, 300 * mebi);
  CHECK(timer.tells(1));
  timer.arm(100 * mebi, 90 * mebi);
  CHECK(timer.approaches.receded == 0);
  timer.arm(100 * mebi, 300 * mebi);
  CHECK(timer.approaches.receded == 0);
  timer.arm(100 * mebi, 800 * mebi);
  CHECK(timer.approaches.receded == 1);
  timer.arm(100 * mebi, 900 * mebi);
  CHECK(timer.approaches.receded == 1);
  timer.timer.recedes();  // the sampler finds so later
  CHECK(timer.approaches.receded == 1);
}

TEST_CASE("a sampler that falls asleep again does not take back what the passes say, nor they what it says") {
  Timer timer;
  timer.arm(100 * mebi, 300 * mebi);
  timer.timer.approaches();
  CHECK(timer.approaches.told == 1);  // at once
  timer.timer.recedes();
  CHECK(timer.approaches.receded == 0);
  timer.timer.approaches();
  timer.arm(100 * mebi, 800 * mebi);
  CHECK(timer.approaches.receded == 0);
  timer.timer.recedes();
  CHECK(timer.approaches.receded == 1);
  timer.timer.approaches();  // as rapidly as memory is taken it is near again
  timer.timer.recedes();
  CHECK(timer.approaches.told == 3);
  CHECK(timer.approaches.receded == 2);
}

}  // namespace evictd::wake::approach_timer_test
