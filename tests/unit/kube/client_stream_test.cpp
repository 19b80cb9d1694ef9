#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <optional>

#include "kube/api_server.hpp"
#include "kube/client.hpp"
#include "kube/reactor.hpp"

namespace evictd::kube::client_stream_test {

namespace asio = boost::asio;
namespace kube = evictd::kube;
using namespace evictd::test;
using evictd::fixture::error_of;
using evictd::fixture::value_of;
using namespace std::chrono_literals;

namespace {

/// A watch that is on.
struct Fixture {
  ApiServer server;
  KubeReactor reactor;
  FeedPtr feed = std::make_shared<Feed>();
  kube::Client client;

  explicit Fixture(kube::ClientOptions options = {})
      : client{reactor.context.get_executor(), reactor.workers.get_executor(), credentials_for(server.url()), options} {
    server.then(streams(feed));
  }

  kube::Opened open() { return value_of(reactor.run(client.open(get("/watch"), patience))); }
  std::optional<std::string> next(kube::LineStream& lines, evictd::core::Duration idle = patience) {
    return value_of(reactor.run(lines.next(idle)));
  }
  std::string error(kube::LineStream& lines, evictd::core::Duration idle = patience) {
    return error_of(reactor.run(lines.next(idle)));
  }
  std::string line(std::string_view what) const { return server.url() + ": " + std::string(what); }
};

}  // namespace

TEST_CASE("lines come as they are sent, until the server ends the answer") {
  Fixture f;
  const auto opened = f.open();
  CHECK(opened.response.status == 200);
  REQUIRE(opened.lines);
  f.feed->line("one");
  CHECK(f.next(*opened.lines) == "one");
  f.feed->bytes("tw");
  f.feed->bytes("o\nthree\nfo");
  CHECK(f.next(*opened.lines) == "two");
  CHECK(f.next(*opened.lines) == "three");
  f.feed->bytes("ur\n");
  CHECK(f.next(*opened.lines) == "four");
  f.feed->end();
  CHECK(f.next(*opened.lines) == std::nullopt);
}

TEST_CASE("lines that come with the answer's head are not lost") {
  Fixture f;
  f.server.otherwise([](Exchange& exchange) {
    exchange.raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n");
  });
  f.feed->end();
  CHECK(f.next(*f.open().lines) == std::nullopt);
  const auto opened = f.open();
  CHECK(f.next(*opened.lines) == "one");
  CHECK(f.next(*opened.lines) == "two");
  CHECK(f.next(*opened.lines) == std::nullopt);
}

TEST_CASE("a watch may bring more than any body") {
  Fixture f{{.largest_body = 1000}};
  const auto opened = f.open();
  for (int i = 0; i < 100; ++i) {
    f.feed->line(std::string(500, 'x'));
    CHECK(f.next(*opened.lines)->size() == 500);
  }
}

TEST_CASE("a watch that breaks is an error, after the lines that came") {
  Fixture f;
  const auto opened = f.open();
  f.feed->line("one");
  SUBCASE("in a chunk") {
    f.feed->cut();
    CHECK(f.next(*opened.lines) == "one");
    CHECK(f.error(*opened.lines) == f.line("the server broke the connection"));
  }
  SUBCASE("in a line") {
    f.feed->bytes("tw");
    f.feed->end();
    CHECK(f.next(*opened.lines) == "one");
    CHECK(f.error(*opened.lines) == f.line("the answer ends in the middle of a line"));
  }
  SUBCASE("with a line that is no end of") {
    Fixture small{{.longest_line = 1024}};
    const auto watch = small.open();
    small.feed->bytes(std::string(2000, 'x'));
    CHECK(small.error(*watch.lines) == small.line("a line is longer than 1 KiB"));
  }
  SUBCASE("into silence") {
    CHECK(f.next(*opened.lines) == "one");
    CHECK(f.error(*opened.lines, 50ms) == f.line("no answer in time"));
  }
  SUBCASE("because the client was stopped") {
    CHECK(f.next(*opened.lines) == "one");
    std::optional<std::string> error;
    asio::co_spawn(f.reactor.context, opened.lines->next(1h),
                   [&](std::exception_ptr, const auto& line) { error = error_of(line); });
    f.reactor.context.restart();
    f.reactor.context.poll();
    f.client.stop();
    REQUIRE(f.reactor.run_until([&] { return error.has_value(); }));
    CHECK(*error == f.line("stopped"));
  }
}

TEST_CASE("a watch that is refused is an answer like any other") {
  Fixture f;
  f.feed->end();
  CHECK(f.next(*f.open().lines) == std::nullopt);
  f.server.then(refuses(410, "Expired", "too old resource version: 1 (7)"));
  auto opened = f.open();
  CHECK_FALSE(opened.lines);
  CHECK(opened.response.status == 410);
  CHECK(kube::describe(opened.response) == "410 Gone: too old resource version: 1 (7)");
  f.server.then(refuses(429, "TooManyRequests", "later", {{"Retry-After", "3"}}));
  opened = f.open();
  CHECK(opened.response.retry_after == 3s);
  f.server.then(answers(500, std::string(2'000'000, 'x')));
  CHECK(
      contains(error_of(f.reactor.run(f.client.open(get("/watch"), patience))), "the answer is larger than 1024 KiB"));
}

TEST_CASE("a watch that goes takes its connection with it") {
  Fixture f;
  auto opened = f.open();
  opened.lines.reset();
  f.server.then(answers(200, "{}"));
  CHECK(f.reactor.run(f.client.send(get("/x"), patience)).has_value());
  CHECK(f.server.connections() == 2);
}

TEST_CASE("a stream that says it is larger than any memory is refused, and the next one is read") {
  Fixture f;
  f.feed->end();
  CHECK(f.next(*f.open().lines) == std::nullopt);
  for (const auto* status : {"200 OK", "500 Internal Server Error"}) {
    f.server.then([status](Exchange& exchange) {
      exchange.raw(std::string("HTTP/1.1 ") + status + "\r\nContent-Length: 1000000000000000\r\n\r\nx");
      exchange.hold();
    });
    CHECK(contains(error_of(f.reactor.run(f.client.open(get("/watch"), patience))),
                   "the answer says that it is larger than there is memory"));
  }
  f.server.then(streams(std::make_shared<Feed>()));
  CHECK(f.open().lines);
}

}  // namespace evictd::kube::client_stream_test
