#include "async/next_turn.hpp"

#include <doctest/doctest.h>
#include <sys/eventfd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <string>
#include <vector>

#include "core/wake.hpp"
#include "os/now.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;

namespace evictd::async::next_turn_test {

TEST_CASE("a pass that the kernel woke while a turn ran comes before the next turn of the same work") {
  asio::io_context reactor{1};
  asio::posix::stream_descriptor crossing{reactor, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  wake::Wakes wakes{reactor.get_executor()};
  std::vector<std::string> order;
  crossing.async_wait(asio::posix::stream_descriptor::wait_read,
                      [&](boost::system::error_code) { wakes.notify({core::WakeSource::Memcg, "", os::now()}); });
  const auto pass = [&]() -> asio::awaitable<void> {
    co_await wakes.next();
    order.emplace_back("pass");
  };
  const auto work = [&]() -> asio::awaitable<void> {
    co_await asio::post(reactor, asio::use_awaitable);  // the pass waits by now
    REQUIRE(::eventfd_write(crossing.native_handle(), 1) == 0);
    order.emplace_back("first turn");
    co_await next_turn(reactor.get_executor());
    order.emplace_back("next turn");
  };
  asio::co_spawn(reactor, pass(), asio::detached);
  asio::co_spawn(reactor, work(), asio::detached);
  reactor.run();
  CHECK(order == std::vector<std::string>{"first turn", "pass", "next turn"});
}

}  // namespace evictd::async::next_turn_test
