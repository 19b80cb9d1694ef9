#include "commands/side_task.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <stdexcept>

namespace asio = boost::asio;

namespace evictd::commands {
namespace {

asio::awaitable<void> fails() {
  throw std::runtime_error("told on purpose by a test");
  co_return;
}

}  // namespace

TEST_CASE("a side task that throws ends alone") {
  asio::io_context reactor{1};
  spawn_beside(reactor.get_executor(), fails(), "nothing is lost");
  bool goes_on = false;
  asio::post(reactor, [&] { goes_on = true; });
  CHECK_NOTHROW(reactor.run());
  CHECK(goes_on);
}

}  // namespace evictd::commands
