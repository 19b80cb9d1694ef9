#include "async/spawn.hpp"

#include <doctest/doctest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <stdexcept>
#include <string>

namespace asio = boost::asio;

namespace evictd::async::spawn_test {
namespace {

asio::awaitable<void> fail_later(asio::any_io_executor executor) {
  co_await asio::post(executor, asio::use_awaitable);
  throw std::out_of_range("no such pod");
}

asio::awaitable<void> count(int& ended) {
  ++ended;
  co_return;
}

}  // namespace

TEST_CASE("what a spawned operation throws ends the loop that runs it, with the operation's name") {
  asio::io_context loop{1};
  spawn(loop.get_executor(), fail_later(loop.get_executor()), "listing the pods");
  CHECK_THROWS_WITH_AS(loop.run(), "listing the pods: no such pod", std::runtime_error);
}

TEST_CASE("what a contained operation throws ends it alone, and its failure is told with the reason") {
  asio::io_context loop{1};
  std::string reason;
  int ended = 0;
  spawn_contained(loop.get_executor(), fail_later(loop.get_executor()), [&](const std::string& why) { reason = why; });
  spawn_contained(loop.get_executor(), count(ended), [&](const std::string&) { FAIL("it did not fail"); });
  asio::post(loop, [&] { ++ended; });
  CHECK_NOTHROW(loop.run());
  CHECK(reason == "no such pod");
  CHECK(ended == 2);
}

TEST_CASE("what is thrown and is no std::exception is told, too") {
  asio::io_context loop{1};
  const auto fail = []() -> asio::awaitable<void> {
    throw 1;
    co_return;
  };
  spawn(loop.get_executor(), fail(), "measuring");
  CHECK_THROWS_WITH_AS(loop.run(), "measuring: what was thrown is no std::exception", std::runtime_error);
}

TEST_CASE("a spawned operation that ends leaves the loop to the others") {
  asio::io_context loop{1};
  int ended = 0;
  spawn(loop.get_executor(), count(ended), "one");
  spawn(loop.get_executor(), count(ended), "another");
  loop.run();
  CHECK(ended == 2);
}

}  // namespace evictd::async::spawn_test
