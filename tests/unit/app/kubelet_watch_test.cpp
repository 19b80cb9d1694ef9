#include "app/kubelet_watch.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>

#include "cri/run.hpp"

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

}  // namespace evictd::app::kubelet_watch_test
