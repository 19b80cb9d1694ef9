#include "app/kubelet_watch.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "cri/run.hpp"
#include "os/now.hpp"

namespace evictd::app::kubelet_watch_test {

TEST_CASE("when the kubelet has ended its successor is looked for, until there is one") {
  boost::asio::io_context reactor;
  int looks = 0;
  KubeletWatch watch{reactor.get_executor(), [&] { ++looks; }};
  const auto process = [] {
    const pid_t pid = ::fork();
    if (pid == 0) ::pause();
    return pid;
  };
  const pid_t first = process();
  watch.found(first);
  watch.found(first);
  reactor.poll();
  CHECK(looks == 0);
  ::kill(first, SIGKILL);
  REQUIRE(test::run_until(reactor, [&] { return looks == 1; }));
  watch.found(std::nullopt);  // not yet
  REQUIRE(test::run_until(reactor, [&] { return looks == 2; }));
  const pid_t second = process();
  watch.found(second);
  ::kill(second, SIGKILL);
  REQUIRE(test::run_until(reactor, [&] { return looks == 3; }));
  for (const auto pid : {first, second}) ::waitpid(pid, nullptr, 0);
}

TEST_CASE("while it is not known what the kubelet goes by, that is looked for") {
  boost::asio::io_context reactor;
  int looks = 0;
  KubeletWatch watch{reactor.get_executor(), [&] { ++looks; }};
  watch.found(::getpid(), false);
  REQUIRE(test::run_until(reactor, [&] { return looks == 1; }));
  watch.found(::getpid(), false);
  REQUIRE(test::run_until(reactor, [&] { return looks == 2; }));
  watch.found(::getpid());
  reactor.run_for(std::chrono::seconds(5));
  CHECK(looks == 2);
}

TEST_CASE("one of which it was not known what it goes by may come back for a minute; one that nobody saw may not") {
  boost::asio::io_context reactor;
  KubeletWatch watch{reactor.get_executor(), [] {}};
  watch.found(std::nullopt, false);  // a look that came too late
  CHECK_FALSE(watch.may_come_back(os::now()));
  watch.found(::getpid());
  CHECK_FALSE(watch.may_come_back(os::now()));
  watch.found(::getpid(), false);
  watch.found(std::nullopt);
  CHECK(watch.may_come_back(os::now()));
  CHECK_FALSE(watch.may_come_back(os::now() + std::chrono::minutes(1)));
}

TEST_CASE("whoever is done with it is not asked to look any more, though its timer's word is on the way") {
  boost::asio::io_context reactor;
  int looks = 0;
  std::optional<KubeletWatch> watch{std::in_place, reactor.get_executor(), [&] { ++looks; }};
  boost::asio::steady_timer done{reactor, std::chrono::milliseconds(1)};
  done.async_wait([&](boost::system::error_code) { watch.reset(); });
  watch->found(std::nullopt);  // to be looked for after a second
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  reactor.poll();  // both timers are over: the reactor takes their words together
  CHECK_FALSE(watch.has_value());
  CHECK(looks == 0);
}

}  // namespace evictd::app::kubelet_watch_test
