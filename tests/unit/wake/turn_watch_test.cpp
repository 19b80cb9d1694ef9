#include "wake/turn_watch.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::wake::turn_watch_test {
namespace {

/// A bound that a busy machine keeps to by itself.
constexpr TurnWatch::Options quick{.bound = 1s, .look = 100ms, .say = 1h};

struct Watched : SourceListener {
  asio::io_context reactor{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{reactor.get_executor()};
  Wakes wakes{reactor.get_executor()};
  std::vector<std::string> said;
  std::atomic<int> hung = 0;
  TurnWatch watch;

  explicit Watched(TurnWatch::Options options = quick)
      : watch{reactor.get_executor(), wakes, [this] { ++hung; }, options} {
    wakes.listen(*this);
  }
  void source_degraded(const std::string& /*source*/, const Error& /*error*/) override {}
  void source_recovered(const std::string& source, const std::string& what) override {
    CHECK(source == "turns");
    said.push_back(what);
  }
  bool comes_true(const std::function<bool()>& condition) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (!condition() && std::chrono::steady_clock::now() < give_up) reactor.run_one_for(10ms);
    return condition();
  }
};

/// Stops this process, and has it go on after a while.
void stand_still(core::Duration time) {
  const auto pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::kill(::getppid(), SIGSTOP);
    ::usleep(static_cast<useconds_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count()));
    ::kill(::getppid(), SIGCONT);
    ::_exit(0);
  }
  REQUIRE(::waitpid(pid, nullptr, 0) == pid);
}

}  // namespace

TEST_CASE("a long turn is counted, said and begins a pass; the next ones are counted only") {
  Watched watched;
  watched.reactor.run_for(50ms);
  CHECK(watched.watch.lateness().long_turns == 0);
  for (std::uint64_t turns = 1; turns <= 2; ++turns) {
    asio::post(watched.reactor, [] {
      async::Turns::doing("a test");
      std::this_thread::sleep_for(1500ms);
    });
    REQUIRE(watched.comes_true([&] { return watched.watch.lateness().long_turns >= turns; }));
  }
  CHECK(watched.watch.lateness().longest_turn >= 1500ms);
  CHECK(watched.watch.lateness().busiest_turn < 1500ms);  // it slept
  REQUIRE(watched.said.size() == 1);
  CHECK(watched.said[0].starts_with("a turn of the loop (a test) took "));
  const auto status = watched.watch.status();
  REQUIRE(status.size() == 1);
  CHECK(status[0].name == "turns");
  CHECK(status[0].state == "armed");
  CHECK(status[0].wakes >= 2);
  CHECK(status[0].detail.find(" turns longer than 1s, the longest ") != std::string::npos);
}

TEST_CASE("a long turn is told when it ends, however seldom the thread looks") {
  Watched watched{{.bound = 1s, .look = 1h, .say = 1h}};
  asio::post(watched.reactor, [] { std::this_thread::sleep_for(1500ms); });
  REQUIRE(watched.comes_true([&] { return watched.watch.lateness().long_turns >= 1; }));
}

TEST_CASE("a process that was stopped stood still: that is no long turn of the loop, even in the middle of one") {
  Watched watched;
  watched.reactor.run_for(250ms);
  asio::post(watched.reactor, [] { stand_still(2500ms); });
  REQUIRE(watched.comes_true([&] { return watched.watch.lateness().longest_standstill >= 2s; }));
  watched.reactor.run_for(250ms);  // for the next look, to which the turn may come
  CHECK(watched.watch.lateness().long_turns == 0);
  CHECK(watched.watch.lateness().standstills >= 1);
  REQUIRE(watched.said.size() == 1);
  CHECK(watched.said[0].starts_with("evictd stood still for "));
}

TEST_CASE("where a turn hangs that is heard of while it does, once") {
  Watched watched{{.bound = 100ms, .look = 10ms, .stuck = 200ms}};
  bool heard = false;
  asio::post(watched.reactor, [&] {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (watched.hung == 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(100ms);
    heard = watched.hung == 1;
  });
  watched.reactor.run_one();
  CHECK(heard);
}

TEST_CASE("what is late when it ends harms nobody") {
  {
    Watched watched;
    asio::post(watched.reactor, [] { std::this_thread::sleep_for(1200ms); });
    watched.reactor.poll();
  }
  Watched again;
  again.reactor.run_for(10ms);
  CHECK(again.watch.lateness().long_turns == 0);
}

}  // namespace evictd::wake::turn_watch_test
