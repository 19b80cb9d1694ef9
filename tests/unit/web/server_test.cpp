#include "web/server.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <filesystem>
#include <future>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "web/http_client.hpp"

namespace evictd::web::server_test {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using evictd::test::http_get;
using evictd::test::http_request;
using evictd::test::RawConnection;
namespace web = evictd::web;

namespace {

/// Says what it is given, one after the other, and then ends or waits for ever.
class Said final : public web::Messages {
 public:
  Said(asio::any_io_executor reactor, std::vector<std::string> texts, bool ends, std::atomic<int>& alive)
      : timer_{std::move(reactor)}, texts_{texts.begin(), texts.end()}, ends_{ends}, alive_{alive} {
    ++alive_;
  }
  ~Said() override { --alive_; }
  asio::awaitable<web::MessagePtr> next() override {
    if (texts_.empty()) {
      if (ends_) co_return nullptr;
      timer_.expires_after(20ms);
      co_await timer_.async_wait(asio::use_awaitable);
      co_return std::make_shared<const std::string>(": still here\n\n");
    }
    auto text = std::make_shared<const std::string>(texts_.front());
    texts_.pop_front();
    co_return text;
  }

 private:
  asio::steady_timer timer_;
  std::deque<std::string> texts_;
  bool ends_;
  std::atomic<int>& alive_;
};

/// A server on a reactor that runs on a thread of its own.
struct Serving {
  explicit Serving(web::ServerOptions options = {}) {
    web::Content content;
    content.documents["/hello"] = {.content_type = "text/plain",
                                   .headers = {{"X-Kind", "greeting"}},
                                   .body = []() -> asio::awaitable<std::string> { co_return "hello, you"; }};
    content.documents["/large"] = {.content_type = "text/plain", .body = []() -> asio::awaitable<std::string> {
                                     co_return std::string(8 << 20, 'x');
                                   }};
    content.documents["/broken"] = {.content_type = "text/plain", .body = []() -> asio::awaitable<std::string> {
                                      throw std::bad_alloc{};
                                      co_return "";
                                    }};
    content.streams["/short"] = [this] {
      return std::make_unique<Said>(reactor.get_executor(), std::vector<std::string>{"data: 1\n\n", "data: 2\n\n"},
                                    true, alive);
    };
    content.streams["/long"] = [this] {
      ++begun;
      return std::make_unique<Said>(reactor.get_executor(), std::vector<std::string>{"data: 1\n\n"}, false, alive);
    };
    content.streams["/full"] = [] { return nullptr; };
    server.emplace(reactor.get_executor(), options, std::move(content), [this](const std::string& reason) {
      if (reason == std::bad_alloc{}.what()) ++failures;
    });
    const auto started = server->start();
    REQUIRE_MESSAGE(started.has_value(), (started ? "" : started.error().message));
    port = server->port();
    thread = std::thread{[this] { reactor.run(); }};
  }
  ~Serving() {
    run([this] { server.reset(); });
    work.reset();
    thread.join();
  }

  void run(std::function<void()> action) {
    std::promise<void> done;
    asio::post(reactor, [&] {
      action();
      done.set_value();
    });
    done.get_future().wait();
  }
  [[nodiscard]] std::size_t connections() {
    std::size_t count = 0;
    run([&] { count = server->connections(); });
    return count;
  }
  [[nodiscard]] bool comes_to(std::size_t count) {
    for (const auto end = std::chrono::steady_clock::now() + 60s; std::chrono::steady_clock::now() < end;) {
      if (connections() == count) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }

  asio::io_context reactor{1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(reactor);
  std::atomic<int> begun = 0;     // long streams
  std::atomic<int> alive = 0;     // streams that were begun and not ended
  std::atomic<int> failures = 0;  // of memory, as the owner is told
  std::optional<web::Server> server;
  std::uint16_t port = 0;
  std::thread thread;
};

std::size_t open_files() {
  const auto directory = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(directory), end(directory)));
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a document is served with its type and length, HEAD gets the same without the body") {
  Serving serving;
  const auto got = http_get(serving.port, "/hello?query=is+ignored");
  CHECK(got.status == 200);
  CHECK(got.body == "hello, you");
  CHECK(has(got.header, "Content-Type: text/plain"));
  CHECK(has(got.header, "Content-Length: 10"));
  CHECK(has(got.header, "X-Kind: greeting"));
  CHECK(has(got.header, "X-Content-Type-Options: nosniff"));
  const auto head = http_request(serving.port, "HEAD", "/hello");
  CHECK(head.status == 200);
  CHECK(head.body.empty());
  CHECK(has(head.header, "Content-Length: 10"));
  CHECK(http_get(serving.port, "/large").body.size() == 8 << 20);
}

TEST_CASE("a document that cannot be made ends its client's connection, which is told of, and nothing else") {
  Serving serving;
  for (int i = 0; i < 3; ++i) {
    RawConnection connection{serving.port};
    CHECK(connection.send("GET /broken HTTP/1.1\r\nHost: here\r\n\r\n"));
    CHECK(connection.read_to_end().empty());
  }
  CHECK(serving.comes_to(0));
  CHECK(http_get(serving.port, "/hello").status == 200);
  CHECK(serving.failures == 3);
}

TEST_CASE("what is not there is 404, and what only changes things is 405 and says what is allowed") {
  Serving serving;
  CHECK(http_get(serving.port, "/").status == 404);
  CHECK(http_get(serving.port, "/hello/").status == 404);
  CHECK(http_get(serving.port, "/../hello").status == 404);
  CHECK(http_request(serving.port, "POST", "/nothing").status == 404);
  for (const auto* method : {"POST", "PUT", "DELETE", "OPTIONS", "BREW"}) {
    CAPTURE(method);
    const auto answer = http_request(serving.port, method, "/hello");
    CHECK(answer.status == 405);
    CHECK(has(answer.header, "Allow: GET, HEAD"));
  }
  CHECK(http_get(serving.port, "/full").status == 503);
}

TEST_CASE("a connection serves one request after the other, also those that came at once") {
  Serving serving;
  RawConnection connection{serving.port};
  const std::string request = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";
  for (int i = 0; i < 3; ++i) {
    REQUIRE(connection.send(request));
    CHECK(has(connection.read_until("hello, you"), "200 OK"));
  }
  REQUIRE(connection.send(request + "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n" + request));
  CHECK(has(connection.read_until("hello, you"), "200 OK"));
  CHECK(has(connection.read_until("hello, you"), "404 Not Found"));
  CHECK(serving.connections() == 1);
}

TEST_CASE("an old client is answered, and its connection ended") {
  Serving serving;
  RawConnection connection{serving.port};
  REQUIRE(connection.send("GET /hello HTTP/1.0\r\n\r\n"));
  CHECK(has(connection.read_to_end(), "hello, you"));
}

TEST_CASE("what is no request is refused, with a status where somebody may read it, and the connection ends") {
  Serving serving;
  const auto answer_to = [&](const std::string& bytes) {
    RawConnection connection{serving.port};
    connection.send(bytes);
    connection.finish_sending();
    return connection.read_to_end();
  };
  CHECK(has(answer_to("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello\r\n\r\n"), "400"));
  CHECK(has(answer_to("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "400"));
  CHECK(has(answer_to("GET /hello\r\n\r\n"), "400"));
  CHECK(has(answer_to("GET /hello HTTP/1.1\r\nContent-Length: nine\r\n\r\n"), "400"));
  CHECK(has(answer_to("GET /hello HTTP/1.1\r\nContent-Length: 9\r\n\r\nsomething"), "413"));
  CHECK(
      has(answer_to("POST /hello HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n" + std::string(100'000, 'x')), "413"));
  CHECK(has(answer_to("GET /hello HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n"), "431"));
  CHECK(has(answer_to("GET /" + std::string(9000, 'x') + " HTTP/1.1\r\n\r\n"), "431"));
  CHECK(answer_to("GET /hello HT").empty());
  CHECK(answer_to("").empty());
  CHECK(has(answer_to(std::string(200'000, '\0')), "400"));
  CHECK(serving.comes_to(0));
}

TEST_CASE("whoever does not get his request out, or takes no answer, is let go") {
  Serving serving{{.idle_timeout = 300ms, .request_timeout = 300ms, .write_timeout = 300ms}};
  RawConnection silent{serving.port};
  RawConnection slow{serving.port};
  RawConnection deaf{serving.port};
  REQUIRE(slow.send("GET /hello HTTP/1.1\r\nX-Slow: "));
  REQUIRE(deaf.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\nGET /large HTTP/1.1\r\nHost: x\r\n\r\n"));
  CHECK(silent.read_to_end().empty());
  // A byte now and then does not buy more time.
  while (slow.send("x")) std::this_thread::sleep_for(10ms);
  CHECK(serving.comes_to(0));
}

TEST_CASE("a stream is sent as it comes, and ends with its client or by itself") {
  Serving serving;
  const auto ended = http_get(serving.port, "/short");
  CHECK(has(ended.header, "Content-Type: text/event-stream"));
  CHECK(ended.body == "data: 1\n\ndata: 2\n\n");
  CHECK(http_request(serving.port, "HEAD", "/long").body.empty());
  CHECK(has(http_request(serving.port, "HEAD", "/long").header, "Content-Type: text/event-stream"));
  CHECK(serving.begun == 0);
  {
    RawConnection client{serving.port};
    REQUIRE(client.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n"));
    CHECK(has(client.read_until(": still here"), "data: 1\n\n"));
    CHECK(serving.alive == 1);
  }
  CHECK(serving.comes_to(0));
  CHECK(serving.alive == 0);
}

TEST_CASE("beyond the limit the one that waited longest makes room, and who is being served stays") {
  Serving serving{{.connections = 8}};
  RawConnection stream{serving.port};
  REQUIRE(stream.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n"));
  stream.read_until("data: 1\n\n");
  std::deque<RawConnection> idle;
  for (int i = 0; i < 7; ++i) {
    auto& one = idle.emplace_back(serving.port);
    REQUIRE(one.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
    one.read_until("hello, you");
  }
  CHECK(serving.connections() == 8);
  CHECK(http_get(serving.port, "/hello").status == 200);
  CHECK(idle[0].read_to_end().empty());
  REQUIRE(idle[6].send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
  idle[6].read_until("hello, you");
  stream.read_until(": still here");
}

TEST_CASE("a thousand connections that say nothing shut nobody out, and nothing is left of them") {
  Serving serving;
  REQUIRE(http_get(serving.port, "/hello").status == 200);
  REQUIRE(serving.comes_to(0));
  const auto files = open_files();
  {
    std::deque<RawConnection> many;
    for (int i = 0; i < 1000; ++i) {
      // Half of them have begun to say something. Who makes room for the next one is told so by a reset.
      auto& one = many.emplace_back(serving.port);
      if (i % 2 == 0) one.send("GET /hello HTTP/1.1\r\n");
      if (i % 100 == 0) CHECK(http_get(serving.port, "/hello").status == 200);
      if (many.size() > 200) many.pop_front();
    }
    CHECK(http_get(serving.port, "/hello").status == 200);
    CHECK(serving.connections() <= 64);
  }
  CHECK(serving.comes_to(0));
  CHECK(open_files() == files);
}

TEST_CASE("an address that is none and a port that is taken are errors of one line") {
  Serving serving;
  asio::io_context reactor{1};
  const auto nobody_fails = [](const std::string& reason) { FAIL_CHECK(reason); };
  web::Server other{reactor.get_executor(), {.port = serving.port}, {}, nobody_fails};
  const auto taken = other.start();
  REQUIRE_FALSE(taken.has_value());
  CHECK(taken.error().message == fmt::format("127.0.0.1:{}: Address already in use", serving.port));
  web::Server nowhere{reactor.get_executor(), {.address = "localhost"}, {}, nobody_fails};
  REQUIRE_FALSE(nowhere.start().has_value());
  CHECK(nowhere.start().error().message == "\"localhost\" is no IP address");
}

TEST_CASE("a server that goes ends what is open") {
  std::optional<Serving> serving{std::in_place};
  RawConnection idle{serving->port};
  RawConnection stream{serving->port};
  REQUIRE(stream.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n"));
  stream.read_until("data: 1\n\n");
  serving.reset();
  CHECK(idle.read_to_end().empty());
  CHECK_NOTHROW(stream.read_to_end());
}

}  // namespace evictd::web::server_test
