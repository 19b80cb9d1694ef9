#include "async/next_turn.hpp"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace asio = boost::asio;

namespace evictd::async::next_turn_test {

TEST_CASE("what the kernel told while a turn ran comes before the next turn of the same work") {
  asio::io_context reactor{1};
  asio::posix::stream_descriptor crossing{reactor, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::vector<std::string> order;
  crossing.async_wait(asio::posix::stream_descriptor::wait_read,
                      [&](boost::system::error_code) { order.emplace_back("wake-up"); });
  const auto work = [&]() -> asio::awaitable<void> {
    const std::uint64_t one = 1;
    REQUIRE(::write(crossing.native_handle(), &one, sizeof(one)) == sizeof(one));
    order.emplace_back("first turn");
    co_await next_turn(reactor.get_executor());
    order.emplace_back("next turn");
  };
  asio::co_spawn(reactor, work(), asio::detached);
  reactor.run();
  CHECK(order == std::vector<std::string>{"first turn", "wake-up", "next turn"});
}

}  // namespace evictd::async::next_turn_test
