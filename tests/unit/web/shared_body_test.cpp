#include "web/shared_body.hpp"

#include <doctest/doctest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <new>
#include <string>
#include <vector>

namespace evictd::web::shared_body_test {
namespace {

namespace asio = boost::asio;

struct Scene {
  /// Asks so often at once; gives what came of it.
  std::vector<std::string> ask(int times) {
    std::vector<std::string> texts;
    for (int i = 0; i < times; ++i)
      asio::co_spawn(reactor, body(), [&texts](const std::exception_ptr& thrown, std::string text) {
        texts.push_back(thrown ? "thrown" : std::move(text));
      });
    reactor.restart();
    reactor.run();
    return texts;
  }

  asio::awaitable<std::string> make() {
    const auto number = std::to_string(++made);
    asio::steady_timer soon{reactor, std::chrono::milliseconds(1)};
    co_await soon.async_wait(asio::as_tuple(asio::use_awaitable));
    if (fails) throw std::bad_alloc();
    co_return number;
  }

  asio::io_context reactor{1};
  int made = 0;
  bool fails = false;
  decltype(Document::body) body = share_body([this] { return make(); });
};

}  // namespace

TEST_CASE("a text is made once for all who ask meanwhile, and anew for who asks afterwards") {
  Scene scene;
  CHECK(scene.ask(50) == std::vector<std::string>(50, "1"));
  CHECK(scene.ask(2) == std::vector<std::string>(2, "2"));
}

TEST_CASE("where it cannot be made all who asked hear of it, and the next one has it made again") {
  Scene scene;
  scene.fails = true;
  CHECK(scene.ask(3) == std::vector<std::string>(3, "thrown"));
  scene.fails = false;
  CHECK(scene.ask(1) == std::vector<std::string>{"2"});
}

}  // namespace evictd::web::shared_body_test
